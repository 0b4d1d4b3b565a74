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
moment-now = just now
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
inbox-words = Words
inbox-definition = Flow
inbox-priority = Priority from
inbox-due-before = Due before
inbox-sort = Order
inbox-sort-created = Oldest first
inbox-sort-due = Due first
inbox-more = More filters and order
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
tab-events = Events
tab-audit = Audit
tab-related = Related
related-before = Restarts
related-parent = Child of
related-child = Parent of
related-none = It restarts no instance, and has no parent and no children.
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

# The main pages besides the inbox.
start = Start
start-choose = Choose what to start.
start-none = There is no flow that could be started.
start-entity-type = Type of the entity
start-entity-id = Id of the entity
done-instance-start = The instance has begun.
notifications = Notifications
notifications-none = There are no notifications for you or your groups.
notification-assigned = Offered or assigned
notification-reminder = Reminder
notification-escalated = Escalated
notification-decided = Decided
unread = unread
mark-read = Mark as read
mark-read-of = Mark as read: { $title }
search = Search
search-hint = Search (Ctrl K)
search-help = Search for words of titles and summaries, ids of entities, and people.
search-none = Nothing matches “{ $words }”.
search-instances = Instances
search-people = People
status-running = Running
status-suspended = Suspended
status-completed = Completed
status-cancelled = Cancelled
inbox-news = { $count ->
    [one] { $count } new task – show
   *[other] { $count } new tasks – show
}
none = none
me = Me
me-id = Id
me-tenant = Tenant
me-groups = Groups
me-manager = Manager
me-roles = Roles
me-permissions = What the roles permit
me-absences = Absences
me-absences-none = You are not absent, and stand in for nobody.
me-absent = You are absent; { $substitute } stands in.
me-stands-in = You stand in for { $person }.
me-sessions = Where you are signed in
session-begun = signed in
session-used = last used
session-ends = ends
session-this = This browser
session-end = Sign out there

# Keys.
keys = Keys
keys-move = next and previous task of a list
keys-open = open the task
keys-decide = the first and the second outcome
keys-comment = write the comment
keys-search = search
keys-help = this help
close = Close
