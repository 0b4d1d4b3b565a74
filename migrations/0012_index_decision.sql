-- What is asked by time alone: the decisions and the refused attempts of a period, for proofs of compliance. Both tables
-- only grow, in about the order of time, so a summary of page ranges is enough and costs their inserts next to nothing.
set local role wrkflw_owner;

create index decision_period on decision using brin (decided_at) with (pages_per_range = 32, autosummarize = on);
create index refused_attempt_period on refused_attempt using brin (occurred_at) with (pages_per_range = 32, autosummarize = on);

reset role;
