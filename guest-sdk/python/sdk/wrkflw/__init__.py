"""Write the logic of a wrkflw flow in Python: `class Requests(Flow[Config, Request])`, and `Logic = export(Requests)`."""

from wit_world.imports.types import Actor, Decider, Decision, EndedChild, Entry, Instance, Overdue, PassedDeadline, PastState
from wit_world.imports.types import ReceivedSignal, ServiceAnswer, StateInstance, Task, TaskStatus, Violation

from .facts import Event, Facts, Quorum, is_open
from .flow import Flow, export
from .graph import Graph, State, Transition, own_work, router, service, task, terminal, wait, way
from .moment import instant, moment
from .plan import Plan, Target, end_branch, fork, reoffer, spawn, stay, to
from .refusal import Refusal, all_invalid, denied, fault, invalid, not_now
from .work import Assignment, Offer, ServiceCall, Waiting, after, at, at_least, cancel_instance, child, days, escalate, fire, group
from .work import hours, manager_of, member, minutes, more_than, release, remind, subscribe, to_each, to_each_member, to_group
from .work import to_manager_of, to_nobody, to_user, user, working, working_days
