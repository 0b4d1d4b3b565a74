"""An approval: python approval.py URL AUTHOR_TOKEN REVIEWER_TOKEN"""

import sys

from wrkflw import ProblemError, connect
from wrkflw.api.api.instances import start_instance
from wrkflw.api.api.tasks import claim_task, decide_task
from wrkflw.api.models import CommandAnswer, DecideBody, StartBody, StartBodyData

url, author_token, reviewer_token = sys.argv[1:4]
author, reviewer = connect(url, author_token), connect(url, reviewer_token)

data = StartBodyData.from_dict({"title": "A plan"})
body = StartBody(definition_key="document-approval", entity_type="document", entity_id="python", data=data)
started = start_instance.sync(client=author, body=body)
assert isinstance(started, CommandAnswer)
task = started.instance.states[0].tasks[0]

try:
    claim_task.sync(task.id, client=author)
except ProblemError as refused:
    assert refused.code == "forbidden", "nobody reviews their own request"

decided = decide_task.sync(task.id, client=reviewer, body=DecideBody(outcome="APPROVE"))
assert isinstance(decided, CommandAnswer)
print(",".join(state.name for state in decided.instance.states))
