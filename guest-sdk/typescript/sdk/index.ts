// Write the logic of a wrkflw flow in TypeScript or JavaScript: `export const logic = flow({ ... })`.

import "./pure.ts";

export type * from "./contract.ts";
export { Event, Facts, isOpen, type Quorum } from "./facts.ts";
export { flow, type Flow, type Types } from "./flow.ts";
export { ownWork, router, service, task, terminal, wait } from "./graph.ts";
export type { CommentRule, FiredBy, Graph, Reads, State, StateOptions, Transition, Transitions } from "./graph.ts";
export { endBranch, fork, type Patch, Plan, reoffer, spawn, stay, type Target, to } from "./plan.ts";
export { allInvalid, denied, fault, invalid, notNow, Refusal } from "./refusal.ts";
export { days, group, hours, managerOf, member, minutes, toEach, toEachMember, toGroup, toManagerOf, toNobody, toUser, user } from "./work.ts";
export type { Assignment, Child, Deadline, Needed, Offer, ServiceCall, Waiting } from "./work.ts";
