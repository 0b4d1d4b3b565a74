# The frame.
skip = Skip to the content
nav = Main
inbox = Inbox
sign-in = Sign in
sign-out = Sign out
language = Language
api-docs = API documentation
to-inbox = Back to the inbox

# Signing in.
sign-in-demo = This host is for development. Choose who you are:
sign-in-no-group = no group
sign-in-token = Sign in with an access token
sign-in-token-field = Access token
sign-in-token-help = The same token that programs send to the API. The session ends with the token at the latest.
sign-in-no-token = Paste an access token.
sign-in-refused = The token was not accepted: { $detail }

# Moments.
moment-now = now
moment-in-minutes = { $count ->
    [one] in { $count } minute
   *[other] in { $count } minutes
}
moment-in-hours = { $count ->
    [one] in { $count } hour
   *[other] in { $count } hours
}
moment-in-days = { $count ->
    [one] in { $count } day
   *[other] in { $count } days
}
moment-ago-minutes = { $count ->
    [one] { $count } minute ago
   *[other] { $count } minutes ago
}
moment-ago-hours = { $count ->
    [one] { $count } hour ago
   *[other] { $count } hours ago
}
moment-ago-days = { $count ->
    [one] { $count } day ago
   *[other] { $count } days ago
}

# Work.
started-by = started by { $who }
suspended = Suspended
due = Due
since = Since
with = With
offered-to = Offered to
held-by-you = Yours
holder-for = { $owner } for { $other }
priority-number = Priority { $number }
claim = Claim
claim-of = Claim: { $title }

# The inbox.
inbox-views = Views
inbox-view-mine = Mine
inbox-view-available = To claim
inbox-view-groups = My groups
inbox-view-all = All
inbox-count = { $count ->
    [one] { $count } task
   *[other] { $count } tasks
}
inbox-count-more = More than { $count } tasks
inbox-filter = Filter
inbox-words = Search
inbox-definition = Flow
inbox-priority = Priority from
inbox-due-before = Due before
inbox-sort = Order
inbox-sort-created = Oldest first
inbox-sort-due = Due first
inbox-apply = Apply
inbox-clear = Show all of this view
inbox-see-available = See what you may claim
inbox-empty-mine = You hold no task.
inbox-empty-available = Nothing waits for you. New work comes here when a flow offers it to you or to one of your groups.
inbox-empty-groups = None of your groups has work to claim. An administrator of the directory can tell which groups you are in.
inbox-empty-all = There is no open task at all.
inbox-empty-filtered = No task of this view matches the filter.
pages = Pages
first-page = First page
next-page = Next page

# Why something is not possible.
trouble-missing = Not found
trouble-missing-detail = There is no page at this address. The link may be old, or incomplete.
trouble-forbidden = You may not do this
trouble-refused = This is not possible now
trouble-failed = Something failed here
trouble-request = For the operator: request { $id }
trouble-foreign = The form was not accepted
trouble-foreign-detail = It came from another site, or you have signed in again since the page was loaded. Open the page again and repeat what you did.

# An instance.
tabs = Parts of the page
tab-timeline = Timeline
tab-diagram = Diagram
tab-data = Data
diagram-alt = The states and transitions of the flow, with the way taken. The timeline says the same in words.
data-now = Data of the flow now
completed = Completed
cancelled = Cancelled
stopped-by = { $who }: { $reason }
about-instance = Started by { $who }, { $when }. Flow { $flow }.
waits-for = Waits for { $who }
waits = Waits
nobody = Nobody can do this work now. An operator has to give it to somebody.
needs-decisions = { $count ->
    [one] Needs { $count } decision with the same outcome.
   *[other] Needs { $count } decisions with the same outcome.
}
decided = { $who }: { $outcome }
decided-for = { $who } for { $other }: { $outcome }
left-by = { $trigger }, by { $who }
left = { $trigger }
ended-with = Ended: { $outcome }
ahead-certain = still to come
ahead-possible = may come

# Acting.
why-not = What you may not do now, and why
refused-without-reason = This is not possible now.
act-task-claim = Claim
act-task-release = Release
act-task-delegate = Delegate
act-task-resolve = Give back to who delegated it
act-task-reassign = Hand to somebody else
act-task-reset = Offer anew
act-task-suspend = Suspend the task
act-task-resume = Resume the task
act-instance-cancel = Cancel the instance
act-instance-suspend = Suspend the instance
act-instance-resume = Resume the instance
act-instance-restart = Start again
field-reason = Reason
field-person = Person
required = required
optional = optional
comment = Comment
what-will-happen = What will happen
what-next = Next
what-stays = Goes on
what-waits-for = waits for
what-nothing = Nothing changes: it is so already.
ends-with = The instance ends: { $outcome }
ends-cancelled = The instance ends: it is cancelled.
preview = Show what will happen
confirm = Confirm: { $action }
leave = Do not do it
form-mend = Some fields need another value.
form-gone = This is not open any more
first-decided = { $who } was first: { $outcome }
first-you = You have decided this already: { $outcome }
first-acted = { $who } was first
first-see-above = What is open now is shown above.
done-task-decide = Your decision is recorded.
done-task-claim = The task is yours.
done-task-release = The task is offered again.
done-task-delegate = The task is delegated.
done-task-resolve = The task is back with who delegated it.
done-task-reassign = The task is handed over.
done-task-reset = The task is offered anew.
done-task-suspend = The task is suspended.
done-task-resume = The task is open again.
done-instance-cancel = The instance is cancelled.
done-instance-suspend = The instance is suspended.
done-instance-resume = The instance goes on.
done-instance-restart = A new instance has begun.
done-instance-signal = The signal was sent.
