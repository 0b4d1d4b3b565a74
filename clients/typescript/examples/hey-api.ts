// The same approval with a client by @hey-api/openapi-ts: node hey-api.js URL AUTHOR_TOKEN REVIEWER_TOKEN
import { createClient } from "../build-hey/client/index.js";
import { claimTask, decideTask, startInstance } from "../build-hey/sdk.gen.js";

const [baseUrl = "", author = "", reviewer = ""] = process.argv.slice(2);
const as = (token: string) => createClient({ baseUrl, auth: token });

const started = await startInstance({
  client: as(author),
  body: { definitionKey: "document-approval", entityType: "document", entityId: "hey-api", data: { title: "A plan" } },
});
if (started.error) throw new Error(`${started.error.code}: ${started.error.detail}`);
const task = started.data.instance.states[0]?.tasks[0];
if (!task) throw new Error("nobody can review");

const own = await claimTask({ client: as(author), path: { id: task.id } });
if (own.error?.code !== "forbidden") throw new Error("nobody reviews their own request");

const decided = await decideTask({ client: as(reviewer), path: { id: task.id }, body: { outcome: "APPROVE" } });
if (decided.error) throw new Error(`${decided.error.code}: ${decided.error.detail}`);
console.log(decided.data.instance.states.map((state) => state.name).join());
