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
sign-in-provider = Sign in with the identity provider
sign-in-not-begun = The sign-in took too long, or began in another browser. Sign in again.
sign-in-down = The identity provider cannot be reached now. Try again soon. For operators: { $detail }
sign-in-setting = The identity provider and this host do not fit together. For operators: { $detail }
sign-in-busy = Too many people sign in at once. Try again in a moment.
sign-in-client = The identity provider does not accept this host ({ $code }). For operators: check oidc_client_id and oidc_client_secret.
sign-in-provider-refused = The identity provider refused the sign-in: { $code }
sign-in-clocks = The clocks of the identity provider and of this host differ too much. For operators: set them.
sign-in-claim = The identity provider does not say { $claim } in a usable form. For operators: have it put the claim { $claim } into the ID token.
sign-in-foreign = The answer of the identity provider is not for this sign-in: see { $claim }. Sign in again.
sign-in-untrusted = The answer of the identity provider is not signed by one of its keys. For operators: check jwks_url.
sign-in-unknown = This host does not know you yet: { $detail }. For operators: add the tenant, or have the provider name another.
signed-out = You are signed out
signed-out-here = You are signed out of wrkflw. You may still be signed in at the identity provider.
signed-out-there = Sign out at the identity provider, too
sign-in-again = Sign in again

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
inbox-search = Search
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
searched-in-part = Nothing is found so far, but not everything was searched.
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
related-after = Restarted by
related-parent = Child of
related-child = Parent of
related-none = It restarts no instance and none restarts it, and it has no parent and no children.
related-more = There are more related instances than this page looks for.
data-now = Data of the flow now
completed = Completed
cancelled = Cancelled
stopped-by = { $who }: { $reason }
about-instance = Started by { $who }, { $when }. Flow { $flow }.
waits-for = Waits for { $who }
waits = Waits
step-offered = Offered to { $who }
step-handled = Worked on by { $who }
step-begun = Begun
step-ended = ended
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
comments = Comments
ahead-certain = still to come
ahead-possible = may come

# Acting.
why-not = What you may not do now, and why
refused-without-reason = This is not possible now.
refusal-own_request = You requested this, so somebody else works on it.
refusal-excluded = You are excluded from this work.
refusal-already_decided = You have already decided here.
refusal-decided_elsewhere = You decided in another step, and nobody decides in both.
refusal-own_work = This is work of the person who started it. Nobody does it for them.
refusal-not_a_candidate = This work is offered to others.
refusal-not_claimed = Nobody holds this task.
refusal-not_delegated = This task is not delegated.
refusal-not_suspended = This is not suspended.
refusal-delegations_exhausted = This task cannot be delegated further.
refusal-instance_running = This has not ended yet.
refusal-instance_ended = This has ended.
refusal-not_owner = Only the holder of this task may do that.

# Problems of the API by their codes. Those without a text here are shown in the API's own words: a test has the list.
problem-permission_missing = This needs the permission { $reason }.
problem-not_found = It does not exist, or not for you: { $detail }
problem-malformed_json = This is not JSON: { $detail }
problem-malformed_request = The request cannot be read: { $detail }
problem-invalid_cursor = This list has changed since. Begin with its first page.
problem-cursor_expired = This list is from an earlier database. Begin with its first page.
problem-token_malformed = The token cannot be read: { $detail }
problem-token_expired = The session or the token has ended. Sign in again.
problem-token_not_yet_valid = The token is not valid yet.
problem-token_untrusted = The token is not signed by anybody whom this host trusts.
problem-token_claim_invalid = The token says something that this host cannot use: { $detail }
problem-token_keys_unavailable = The keys that verify tokens cannot be reached now. Try again in a moment.
problem-unknown_tenant = This host does not know the tenant: { $detail }
problem-task_taken = Somebody was first, or the work has ended.
problem-instance_suspended = The instance is suspended.
problem-task_suspended = The task is suspended.
problem-already_running = Another instance about this entity runs already: { $detail }
problem-too_many_operations = Too many operations run at once: { $detail }
problem-no_active_version = Nothing can start: { $detail }
problem-version_retired = A retired version is used no more: { $detail }
problem-version_stopped = An operator has stopped the version: { $detail }
problem-unknown_names = The version uses names that do not exist. Add them, or activate it all the same.
problem-limit_reached = A limit is reached: { $detail }
problem-not_first = Another event of the same instance comes first: { $detail }
problem-delivery_ended = It was delivered, or discarded before.
problem-too_large = This is too large: { $detail }
problem-invalid_request = Something is not as it must be: { $detail }
problem-invalid_input = This is not accepted: { $detail }
problem-nobody_left = Somebody must be able to do the remaining work: { $detail }
problem-idempotency_key_reused = This form was sent before with something else in it. Look at what that did before you send it again.
problem-unpublishable = The version cannot be published like this.
problem-logic_budget_exceeded = The logic of the flow used up its budget. Its author has to mend it: { $detail }
problem-logic_fault = The logic of the flow failed. Its author has to mend it: { $detail }
problem-logic_output_too_large = The logic of the flow answered too much. Its author has to mend it: { $detail }
problem-internal = It did not work, and you cannot mend it. The log of the host says more about this request.
problem-busy = Others change the same thing just now. Try again in a moment.
problem-overloaded = The host has too much to do just now. Try again in a moment.
problem-unavailable = The host cannot do this just now: { $detail }
violation-additionalProperties = This is not expected here.
violation-anyOf = This fits none of the alternatives.
violation-const = Only this is allowed: { $value }
violation-contains = A necessary item is missing.
violation-enum = This is none of: { $value }
violation-exclusiveMaximum = This must be less than { $value }.
violation-exclusiveMinimum = This must be more than { $value }.
violation-falseSchema = Nothing may be here.
violation-format = This is not in the format { $value }.
violation-maxItems = Items: at most { $value }.
violation-maxLength = Characters: at most { $value }.
violation-maxProperties = Members: at most { $value }.
violation-maximum = This must be at most { $value }.
violation-minItems = Items: at least { $value }.
violation-minLength = Characters: at least { $value }.
violation-minProperties = Members: at least { $value }.
violation-minimum = This must be at least { $value }.
violation-multipleOf = This must be a multiple of { $value }.
violation-not = This is excluded.
violation-oneOf = This does not fit exactly one of the alternatives.
violation-pattern = This does not match the pattern { $value }
violation-propertyNames = A name is not allowed here.
violation-required = This is required.
violation-schema = This does not fit, and it is too long to say where.
violation-too_costly = This takes too long to check. Shorten it.
violation-type = This must be: { $value }
violation-unevaluatedItems = There are more items than expected.
violation-unevaluatedProperties = This is not expected here.
violation-uniqueItems = Two items are the same.
json-type-array = a list
json-type-boolean = true or false
json-type-integer = a whole number (such as 1500)
json-type-null = nothing
json-type-number = a number (such as 1500.5)
json-type-object = an object
json-type-string = a text
act-task-claim = Claim
act-task-release = Release
act-task-delegate = Delegate
act-task-resolve = Give back to who delegated it
act-task-reassign = Hand to somebody else
act-task-reset = Offer anew
act-task-suspend = Suspend the task
act-task-resume = Resume the task
act-instance-comment = Comment
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
first-suspended = Suspended by { $who }
first-cancelled = Cancelled by { $who }
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
done-instance-comment = Your comment is recorded.
done-instance-cancel = The instance is cancelled.
done-instance-suspend = The instance is suspended.
done-instance-resume = The instance goes on.
done-instance-restart = A new instance has begun.
done-instance-signal = The signal was sent.

# The main pages besides the inbox.
start = Start
start-choose = Choose what to start.
start-none = There is no flow that could be started.
flows-search = Words of a key, title or description
start-entity-type = Type of the entity
start-entity-id = Id of the entity
done-instance-start = The instance has begun.
notifications = Notifications
notifications-none = There are no notifications for you or your groups.
notification-ASSIGNMENT_CREATED = Offered or assigned
notification-STATUS_CHANGED = Status changed
notification-MENTION = You were mentioned
notification-TIMEOUT_WARNING = Due soon
notification-ESCALATION = Escalated
unread = unread
mark-read = Mark as read
mark-read-of = Mark as read: { $title }
search = Search
search-hint = Search (Ctrl K)
search-help = Search for words of titles and summaries, ids of entities, people, flows, and pages of the console.
search-none = Nothing matches “{ $words }”.
search-places = Pages and actions
search-flows = Flows
search-start = Start: { $flow }
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
preferences = How you want pages
preference-of-browser = As the browser
time-zone = Time zone
theme = Colours
theme-of-device = As the device
theme-light = Light
theme-dark = Dark
save = Save
saved = Your choice is saved.
month-previous = Previous month
month-next = Next month
month-title = { $month } { $year }
month-away = Away: { $substitute } stands in
month-stands-in = For { $person }
month-1 = January
month-2 = February
month-3 = March
month-4 = April
month-5 = May
month-6 = June
month-7 = July
month-8 = August
month-9 = September
month-10 = October
month-11 = November
month-12 = December
weekday-1 = Mon
weekday-2 = Tue
weekday-3 = Wed
weekday-4 = Thu
weekday-5 = Fri
weekday-6 = Sat
weekday-7 = Sun
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
keys-zoom = the diagram larger, smaller, and in its usual size
keys-comment = write the comment
keys-search = search
keys-help = this help
close = Close

# Definitions.
trail = Where this is
definitions = Definitions
definitions-about = Every flow with its versions. New instances take the active version; running ones keep theirs.
definitions-empty = Nothing has been published yet.
column-definition = Definition
column-active = Active
column-newest = Newest
column-published = Published by
column-version = Version
column-status = Status
column-component = Component
column-running = Running
version-number = Version { $number }
version-none = none active
version-active = Active
version-idle = Not active
version-retired = Retired
version-stopped = Stopped
version-published = Published by { $who }, { $when }
version-config = Settings of this version
running-all = { $count ->
    [one] { $count } instance runs
   *[other] { $count } instances run
}
running-more = More than { $count } instances run
fact-running = Running instances
fact-digest = Component (SHA-256)
fact-starts = Started by
fact-seen = Seen by
seen-tenant = everybody who may read instances
seen-participants = participants and their managers
seen-participants-and = participants, their managers and { $groups }
fact-reads = The flow is told of people
reads-nothing = nothing but who they are
reads-groups = their groups
reads-permissions = their permissions
reads-comments = comments on decisions
reads-inputs = inputs of decisions
fact-separate = A person decides in one of
fact-sole = Per entity
sole-per-entity = one running instance, of whichever definition
fact-wit = Interface
fact-sdk = SDK
difference = What differs
difference-against = Compare with
difference-show = Compare
difference-from = From version { $old } to version { $new }
difference-component = The component is another one: its logic may decide otherwise although nothing below differs.
difference-none = States, transitions and settings are the same.
difference-states = States
difference-transitions = Transitions
difference-flow = The flow as a whole
difference-config = Settings
difference-added = added
difference-removed = removed
difference-changed = changed
difference-more = { $count ->
    [one] { $count } more change is not listed.
   *[other] { $count } more changes are not listed.
}
action-activate = Activate
action-retire = Retire
action-reinstate = Reinstate
action-stop = Stop
action-resume = Resume
action-force = Do it although these names do not exist. The audit records it.
action-effect-activate = New instances take version { $number } from now on.
action-effect-activate-stay = Version { $number } keeps its running instances: { $running }.
action-effect-activate-undo = To undo it, activate version { $number } again.
action-effect-activate-first = No version is active now: until this one is, no instance can start.
action-effect-retire = No instance starts under version { $number } any more, and none is migrated to it.
action-effect-retire-running = { $count ->
    [one] { $count } running instance continues.
   *[other] { $count } running instances continue.
}
action-effect-retire-active = This is the active version: until another one is activated, no instance can start.
action-effect-reinstate = Version { $number } may be activated again. New instances do not take it until then.
action-effect-stop = Nothing of version { $number } runs any more: no deadline acts, no child starts, nobody decides.
action-effect-stop-running = { $count ->
    [one] { $count } running instance stands still until the version is resumed.
   *[other] { $count } running instances stand still until the version is resumed.
}
action-effect-resume = Version { $number } runs again. Deadlines and other work that became due meanwhile are done at once.
action-effect-resume-running = { $count ->
    [one] { $count } instance goes on.
   *[other] { $count } instances go on.
}
action-done-activate = The version is active.
action-done-retire = The version is retired.
action-done-reinstate = The version is reinstated.
action-done-stop = The version is stopped.
action-done-resume = The version runs again.
undo-activate = Undo: activate version { $number } again

# Operation.
operations = Operation
operations-about = What needs somebody to look after it. Each panel leads to its list.
operations-nothing = There is none. All is well here.
panel-unassignable = Nobody can do it
panel-unassignable-about = Instances with a state that too few people are eligible for.
panel-overdue = Overdue
panel-overdue-about = Running instances with a state or task whose deadline has passed.
panel-stale = Stale
panel-stale-about = Running instances in which nothing has changed for 14 days.
panel-unread = There may be some that you see, behind many that you do not see. Open the list.
panel-dead-letters = Refused events
panel-dead-letters-about = Events that Kafka refused for good. Later events of the same instance wait behind them.
panel-webhooks = Webhooks
panel-webhooks-about = Receivers that have not accepted deliveries, or that are disabled.
panel-jobs = Failing jobs
panel-jobs-about = Deferred work that has failed. Hosts try it again with increasing pauses.
panel-hosts = Hosts
panel-hosts-about = Processes of wrkflw that run on this database. One that fails is listed for 30 seconds.
hosts-versions = Several versions run: { $versions }. The upgrade is not complete.
hosts-without-relay = No host sends events to Kafka.
hosts-without-timers = No host runs jobs: deadlines do not act.
hosts-without-notifier = No host sends notifications and webhooks.
column-host = Host
column-roles = Roles
column-started = Started
column-seen = Last sign of life
column-action = Command
column-reason = Reason
figures = Over time
figures-range = Time
figures-span = From { $from } until { $until }, in steps of { $step }.
figures-values = Numbers
figures-none = All are 0.
range-hour = Last hour
range-day = Last day
range-week = Last week
figures-throughput = Throughput
figures-throughput-about = What was done. The audit has each of them.
figures-refused = Refusals
figures-refused-about = Commands that were refused, by reason. The list has those whose caller was not allowed to; the others are only counted.
figures-relay = Relay
figures-relay-about = Events that wait for Kafka. The list has those that Kafka refused.
figures-webhooks = Deliveries
figures-webhooks-about = Deliveries that wait for their receivers.
figures-jobs = Retries of jobs
figures-jobs-about = Jobs that have failed and wait to be tried again.
figure-decisions = Decisions
figure-starts = Started instances
figure-refusals = Refused commands
figure-events-waiting = Waiting events
figure-events-oldest = Age of the oldest event
figure-deliveries-waiting = Waiting deliveries
figure-deliveries-oldest = Age of the oldest delivery
figure-jobs = Waiting jobs
figure-sum = { $value } in all
figure-maximum = { $value } now
figure-described = At most { $peak } in a step, { $last } in the last one.
duration-seconds = { $count } s
duration-minutes = { $count } min
duration-hours = { $count } h
refusals = Refused commands
refusals-about = Commands that were refused because the caller was not allowed to, the newest first.
refusals-of = Commands that were refused with the reason { $reason }, the newest first. Those that were refused for another reason than the rights of the caller are counted and not kept.
refusals-empty = None was kept. Only commands are kept whose caller was not allowed to.
column-instance = Instance
column-state = State
column-next-deadline = Next deadline
column-changed = Last change
column-people = People
column-job = Job
column-error = Error
column-attempts = Attempts
column-next = Next attempt
column-receiver = Receiver
column-events = Events
column-failures = Given up
column-event = Event
column-sequence = Sequence
column-since = Since
column-delivery = Delivery
column-when = When
column-answer = Answer
column-duration = Duration
job-deadline = Deadline
job-start_child = Start of a child
job-cancel_child = Cancellation of a child
job-child_ended = End of a child
job-match_signals = Search for signals
job-deliver_signal = Delivery of a signal
job-reassess_instance = New assessment
job-call_service = Call of a service
fact-event = Id of the event
content = Content
content-missing = The content cannot be shown: it is not among the recent events of the instance, or you may not read events.
look-again = Look again
dead-letter = Refused event
dead-letter-waiting = Events that wait
dead-letter-followers = { $count ->
    [0] nothing waits behind it
    [one] { $count } event waits behind it
   *[other] { $count } events wait behind it
}
instances-count = { $count ->
    [one] { $count } instance
   *[other] { $count } instances
}
dead-letter-retry = Send again
dead-letter-discard = Discard
dead-letter-choose = Choose at least one instance, and write a reason.
dead-letter-discarded = { $count ->
    [one] The refused event of { $count } instance is discarded, and those behind it are sent.
   *[other] The refused events of { $count } instances are discarded, and those behind them are sent.
}
dead-letter-discard-many = { $count ->
    [one] The refused event of { $count } instance is never sent. Consumers miss its number; the history of the instance keeps it. What waits behind it is sent.
   *[other] The refused events of { $count } instances are never sent. Consumers miss their numbers; the histories of the instances keep them. What waits behind them is sent.
}
choice-group = All with this error, also on other pages
choice-all = All of them, also on other pages
choice-retry = Send the chosen ones again
choice-discard = Discard the chosen ones
choice-bounded = There may be more: one form takes { $count }. Repeat it for the others.
sent = What became of those that were sent again
sent-first = This page follows the first { $count } of them.
sent-refused = Refused again
sent-unknown = Not refused any more
dead-letter-sent = { $count ->
    [one] { $count } event is sent again. It comes back here if Kafka refuses it again.
   *[other] { $count } events are sent again. They come back here if Kafka refuses them again.
}
dead-letter-retry-effect = { $count ->
    [one] { $count } event is sent again.
   *[other] { $count } events are sent again, in their order.
}
dead-letter-discard-effect = { $kind } is never sent. Consumers miss its number; the history of the instance keeps it.
dead-letter-discard-rest = { $count ->
    [0] No event waits behind it.
    [one] { $count } event behind it is sent.
   *[other] { $count } events behind it are sent.
}
dead-letter-done-retry = The events are sent again. If Kafka refuses one again, it comes back here.
dead-letter-done-discard = The event is discarded, and those behind it are sent.
dead-letter-more = More events of this instance wait. Do it again for them.
dead-letter-more-of = { $count ->
    [one] More events of { $count } instance wait. Send them again, too.
   *[other] More events of { $count } instances wait. Send them again, too.
}
dead-letter-gone = No event of this instance waits.
webhooks-about = The receivers of events. A failing one is tried again with increasing pauses, and disabled in the end.
webhooks-empty = There is no receiver.
webhook-active = Active
webhook-disabled = Disabled
webhook-failures = { $count ->
    [one] { $count } delivery given up
   *[other] { $count } deliveries given up
}
deliveries = Deliveries
deliveries-empty = There is no such delivery in the last 30 days.
deliveries-count = { $count ->
    [one] { $count } delivery
   *[other] { $count } deliveries
}
delivery-attempts = { $count ->
    [one] { $count } attempt
   *[other] { $count } attempts
}
deliveries-choose = Choose at least one delivery. To discard needs a reason, too.
deliveries-discarded = { $count ->
    [one] { $count } delivery is discarded.
   *[other] { $count } deliveries are discarded.
}
deliveries-discard-many = { $count ->
    [one] { $count } delivery is not sent any more. It may still be sent again by hand.
   *[other] { $count } deliveries are not sent any more. They may still be sent again by hand.
}
deliveries-retry = Send all given-up deliveries again
deliveries-retried = { $count ->
    [one] { $count } delivery is sent again.
   *[other] { $count } deliveries are sent again.
}
delivery = Delivery
delivery-all = All
delivery-dead = Given up
delivery-pending = Waiting
delivery-delivered = Accepted
delivery-discarded = Discarded
delivery-next = Next attempt
delivery-instance = To the instance
delivery-retry = Send again
delivery-discard = Discard
delivery-retry-effect = It is sent at once, and the receiver is enabled if it is disabled. The attempt appears below with its outcome.
delivery-discard-effect = It is not sent any more. It may still be sent again by hand.
delivery-done-retry = It is sent again. The attempt appears below.
delivery-done-discard = It is discarded.
attempts = Attempts
attempt-no-answer = no answer
attempt-duration = { $count } ms

# Who could act.
who-could-act = Who could act
who-instance = The instance
who-revision = revision { $revision }
who-at = At ({ $zone })
who-show = Show
who-now = Now
who-nothing = No task was open then.
who-able = May act
who-nobody = Nobody may act on it.
who-excluded = May not act, although it is offered to them
who-holds = { $who } holds it.
who-more = There are more people than are shown.
who-more-tasks = There are more open tasks than are shown.
way-candidate = it is offered to them
way-group = member of { $who }
way-owner = holds it
way-substitute = stands in for { $who }
exclusion-requester = it is their own request
exclusion-excluded = the flow excludes them
exclusion-already-decided = they have decided already
exclusion-not-initiator = it is for the initiator alone
exclusion-for-requester = stands in for { $who }, whose request it is
exclusion-for-excluded = stands in for { $who }, whom the flow excludes
exclusion-for-decided = stands in for { $who }, who has decided already
exclusion-owned = { $who } holds it
exclusion-lost-eligibility = they are no longer eligible

# The audit.
audit = Audit
audit-about = What happened: in instances, definitions, the directory and operation.
audit-actor = Done by
audit-type = Type of entry
audit-from = From ({ $zone })
audit-until = Before ({ $zone })
audit-sort-newest = Newest first
audit-empty = No entry matches. An entry appears once a checkpoint covers it, a few seconds later.
audit-unsigned = No entry is shown, because no checkpoint is signed. A host signs them if it has a key in checkpoint_keys and the role timers.
audit-signed = Last checkpoint:
audit-host = the host
column-actor = Done by
column-entry = Entry
column-about = About
stream-instance = Instance
stream-definition = Definition
stream-directory = Directory
stream-operation = Operation

# People, groups and roles.
people = People
groups = Groups
roles = Roles
people-search = Beginning of a name or an id
people-nothing = There is none.
people-no-groups = In no group.
people-no-members = The group has no members: work that is offered to it has nobody.
people-no-absences = No absence now or ahead.
people-roles-about = Access tokens say which roles a person has. Here is what each role permits.
people-members = Members
people-permissions = { $count ->
    [one] { $count } permission
   *[other] { $count } permissions
}
people-leave = End the membership of { $name }
people-remove = Remove { $name }
people-return = End the absence of { $name }
people-field-id = Id
people-field-name = Name
people-field-manager = Manager
people-field-group = Group
people-field-person = Person
people-field-substitute = Substitute
people-field-from = From (UTC)
people-field-until = Until (UTC)
people-field-definitionKey = Only for work of this definition (its key)
people-field-permissions = Permissions
people-field-others = Permissions that flows ask for
people-field-others-help = One per line, such as plan:sign.
people-do-add-person = Add a person
people-do-add-group = Add a group
people-do-add-role = Add a role
people-do-rename = Rename
people-do-manager = Set the manager
people-do-no-manager = Remove the manager
people-do-join = Add to a group
people-do-leave = End the membership
people-do-absent = Enter an absence
people-do-return = End the absence
people-do-add-member = Add a member
people-do-remove-member = Remove a member
people-do-permit = Change the permissions
people-do-remove-role = Remove the role
people-effect-add-person = The person is added. They may do what the roles of their access token permit.
people-effect-add-group = The group is added, without members.
people-effect-add-role = The role is added. It counts from the next request on.
people-effect-rename = Pages show the new name. Nothing else changes.
people-effect-manager = Work that flows offer to the manager goes to this person from now on. Work that was offered before stays.
people-effect-no-manager = Work that flows offer to the manager has nobody from now on. Work that was offered before stays.
people-effect-join = The person gets what is offered to the group, also what is open now.
people-effect-leave = The person no longer gets what is offered to the group, and open work that they hold as a member is assessed anew.
people-effect-absent = The substitute may act on the person's work in this time.
people-effect-return = The substitute may no longer act on the person's work.
people-effect-add-member = The person gets what is offered to the group, also what is open now.
people-effect-remove-member = The person no longer gets what is offered to the group, and open work that they hold as a member is assessed anew.
people-effect-permit = It counts from the next request on, for everybody whose token has this role.
people-effect-remove-role = The role permits nothing any more, and is not listed.
people-effect-known = This id exists already, with the name { $name }. Only its name changes.
people-orphans = { $count ->
    [0] No open task is left to nobody.
    [one] { $count } open task is left to nobody:
   *[other] { $count } open tasks are left to nobody:
}
people-orphan = { $what }: { $why }
people-orphans-more = There may be more; not all could be examined.
people-role-gains = It permits also: { $permissions }
people-role-loses = It no longer permits: { $permissions }
people-done-add-person = The person is there.
people-done-add-group = The group is there.
people-done-add-role = The role is there.
people-done-rename = The name is changed.
people-done-manager = The manager is set.
people-done-no-manager = The manager is removed.
people-done-join = The person is a member now.
people-done-leave = The membership has ended.
people-done-absent = The absence is entered.
people-done-return = The absence has ended.
people-done-add-member = The person is a member now.
people-done-remove-member = The person is no longer a member.
people-done-permit = The permissions are changed.
people-done-remove-role = The role is removed.
column-name = Name
column-id = Id
column-role = Role
column-permits = Permits
column-group = Group
column-person = Person
column-absent = Absent
column-substitute = Substitute
column-from = From
column-until = Until
column-do = Change

# The audit's reports.
audit-entries = Entries
compliance = Self-approvals
compliance-about = Decisions that people made on their own requests, and attempts at them that the host refused.
compliance-examined = Decisions examined
compliance-own-work = In states of own work, which are allowed
compliance-self-approvals = Self-approvals
compliance-refused = Refused attempts
compliance-kept = Nobody decided on their own request.
compliance-broken = Somebody decided on their own request. The newest decisions are listed.
column-decision = Decision
column-attempt = Attempt
custody = Chain of custody
custody-about = Every decision and delegation in its order, with its seal as this host verified it.
custody-made = Made by { $who },
custody-seals = { $valid } of { $all } seals are valid.
custody-more = There are more records than one page to be printed has. The file has all.
custody-file = Save as a file (CSV)
custody-empty = Nobody has decided or delegated anything yet.
custody-delegate = Delegated to { $who }
custody-resolve = Given back to { $who }
column-custody = What
column-seal = Seal
seal-VALID = valid
seal-INVALID = not valid
seal-UNKNOWN_KEY = key unknown
seal-UNKNOWN_VERSION = version unknown
seal-MISSING = missing
verify = Verify this instance
verify-whole = All is as it was recorded.
verify-findings = { $count ->
    [one] { $count } difference from what was recorded.
   *[other] { $count } differences from what was recorded.
}
verify-counts = { $entries } entries, { $decisions } decisions, { $delegations } delegations, { $seals } valid seals, { $leaves } leaves of checkpoints.

# Publishing and migrating.
upload = Publish a version
upload-again = Publish with other settings
upload-about = A component is checked, and becomes the next version of its definition. Nothing uses it until it is activated. You are its author.
upload-key = Key of the definition
upload-version = Use the component of a published version again
upload-component = Component (a file ending in .wasm)
upload-config = Settings (JSON)
upload-problems = What the checker found
upload-busy = This host reads other uploads at present. Try again in a moment.
column-place = Where
column-problem = What
action-done-publish = The version is published. New instances take it once it is activated.
action-done-publish-again = This content had been published before, as this version.
migrate = Migrate instances
migrate-from = Migrate the instances of { $key }, version { $number }
migrate-about = Instances keep their state, decisions and data. Open work is offered as the new version determines.
migrate-version = To version
migrate-state = Only those in this state
migrate-state-help = The name of an active state. Empty: all running and suspended instances.
migrate-states = Renamed states
migrate-states-help = One per line: the old name = the new name.
migrate-total = { $count ->
    [0] No instance would be migrated.
    [one] { $count } instance would be migrated.
   *[other] { $count } instances would be migrated.
}
migrate-total-more = { $count } instances would be migrated; there may be more.
migrate-tried = Tried { $tried } of them: { $done } can be migrated, { $refused } are refused, { $failed } fail.
migrate-not = { $id }: { $why }
bulk-operations = Operations on many instances
bulk-about = Migrations and cancellations of many instances, newest first.
bulk-empty = There was none yet.
bulk-migrate = Migration
bulk-cancel = Cancellation
bulk-counts = { $instances }: { $done } done, { $refused } refused, { $failed } failed
bulk-stop = End it early
bulk-result-done = done
bulk-result-refused = refused
bulk-result-failed = failed
bulk-result-waiting = waiting
column-operation = Operation
column-progress = Progress
column-result = Result

# The data and the diagram of an instance.
data-changes = What each step changed
data-changes-none = No step changed the data.
data-start = Start
data-hidden = A decision that is hidden until the vote ends
entry-hash = Hash
entry-seal = Seal: { $state }
seals-more = Seals of later decisions are not shown here. The chain of custody has them.
diagram-file = As a file (SVG)
zoom = Size of the diagram
zoom-smaller = Smaller
zoom-larger = Larger
zoom-usual = Usual size
zoom-fit = As wide as the page
zoom-size = { $size } %
state-ways = Ways out:
column-step = Step
column-data = Values before and after
stream-task = Task
# Many tasks at once.
bulk = Many tasks at once
bulk-select = Select: { $title }
bulk-all = All that match, at most 100
bulk-claim = Claim selected
bulk-release = Release selected
bulk-decide = Decide selected
bulk-head-claim = { $count ->
    [one] Claim { $count } task
   *[other] Claim { $count } tasks
}
bulk-head-release = { $count ->
    [one] Release { $count } task
   *[other] Release { $count } tasks
}
bulk-head-decide = { $count ->
    [one] Decide { $count } task
   *[other] Decide { $count } tasks
}
bulk-nothing = No task is selected. Tick the tasks that you mean, or “All that match”.
bulk-more = More tasks match than can be handled at once. These are the first { $count }.
bulk-outcome = Decision
bulk-comment = Comment on each of them
bulk-which = Which
bulk-will = { $count ->
    [0] No task will change.
    [one] { $count } task will change.
   *[other] { $count } tasks will change.
}
bulk-refused = { $count ->
    [one] { $count } is refused.
   *[other] { $count } are refused.
}
bulk-results = What happened
bulk-done = { $count ->
    [one] { $count } task is done.
   *[other] { $count } tasks are done.
}
bulk-was-refused = { $count ->
    [one] { $count } was refused.
   *[other] { $count } were refused.
}
bulk-group-will = will change
bulk-group-done = done

# Columns and saved views.
inbox-columns = Columns
inbox-column-state = State
inbox-column-priority = Priority
inbox-column-due = Due
inbox-column-created = Since
inbox-column-holder = Holder
inbox-column-initiator = Started by
inbox-column-flow = Flow
view-save = Save this view
view-change = Change this view
view-name = Name of the view
view-default = Show it first
view-keep = Save
view-delete = Delete the view

# Working through a view.
queue = Working through
queue-begin = Work through these
queue-place = Task { $place }
queue-previous = Previous
queue-next = Next
queue-leave = Back to the list
queue-done = Your decision is recorded. This is the next task.
queue-end = Your decision is recorded. No task of this view is left.
keys-queue = previous and next task when working through a list
keys-send = show what will happen, then confirm it
keys-select = select the task of a list
draft-saved = Draft saved
draft-refused = The draft is not saved: { $reason }
draft-save = Save draft
undo = Undo: { $action }
mentions = Mention people
mentions-help = They are notified. Whoever is mentioned may see the instance.
mentions-person = Person to mention
commented-on = { $who } to { $others }

# An instance inside of a page of a product, and the sample product.
embed-read-only = This page only shows the work. Decide in the console.
embed-decides-alone = This page only decides the open tasks of this instance.
embed-token = This page may not show the work any more. Load it again.
embed-origin = The work may not be shown in this page.
embed-unreachable = The work cannot be reached now. What you see may be old.
samples = Sample product
samples-about = The documents of a product that shows its work in its own pages.
sample-type-rfa = Request for approval
sample-type-transmittal = Transmittal
sample-type-circulation = Circulation
sample-type-correspondence = Correspondence
sample-content = The document
sample-number = Number
sample-kind = Type
sample-text = This is the product's own content. The work above comes from this host.
sample-seen-as = Seen as

# What became of the events of an instance.
event-status = Deliveries of the event
kafka-waiting = Waiting
kafka-parked = Refused
kafka-discarded = Discarded
kafka-published = Published

# Activation.
action-effect-activate-more = More instances run than are counted.

# Notes of versions.
upload-note = Why it is published

# Checkpoints and the export of the audit.
audit-file = Save as a file
audit-file-about = All that match, one JSON object per line, at most 10,000 entries; the last line says whether there are more.
checkpoints = Checkpoints
checkpoints-about = Signed roots of all entries, newest first. Whoever keeps one outside of the database can detect a later change of what it covers.
checkpoints-empty = No checkpoint is signed. A host signs them if it has a key in checkpoint_keys.
column-checkpoint = Number
column-covers = Entries that it adds
column-signature = Signature
column-root = Root
checkpoint-VALID = valid
checkpoint-INVALID = invalid
checkpoint-UNKNOWN_KEY = unknown key
checkpoint-OUT_OF_ORDER = does not continue the one before
checkpoint-leaves = { $first } to { $last }

# Absences that one enters, and tokens.
absence-day = Enter an absence: { $day }
absence-choose = Choose a day to enter an absence; a second day makes it a range.
absence-first = First day
absence-last = Last day
absence-effect = Your substitute may act on your work from the beginning of the first day to the end of the last one.
me-tokens = Tokens
me-tokens-about = Tokens of programs come from the identity provider or from whoever signs them with the key of the host: the host keeps no list of them and cannot revoke one before it ends. It ends the sessions of browsers:
me-notified = What you are notified of
me-notified-about = What you switch off does not come to you any more, also not by webhook. Notifications that exist stay.
