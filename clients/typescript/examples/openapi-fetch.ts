// An approval with types by openapi-typescript and calls by openapi-fetch: node openapi-fetch.js URL AUTHOR_TOKEN REVIEWER_TOKEN
import createClient from "openapi-fetch";
import type { paths } from "../src/schema.js";

const [baseUrl = "", author = "", reviewer = ""] = process.argv.slice(2);
const as = (token: string) => createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

const started = await as(author).POST("/v1/instances", {
  body: { definitionKey: "document-approval", entityType: "document", entityId: "openapi-fetch", data: { title: "A plan" } },
});
if (started.error) throw new Error(`${started.error.code}: ${started.error.detail}`);
const task = started.data.instance.states[0]?.tasks[0];
if (!task) throw new Error("nobody can review");

const own = await as(author).POST("/v1/tasks/{id}/claim", { params: { path: { id: task.id } } });
if (own.error?.code !== "forbidden") throw new Error("nobody reviews their own request");

const decided = await as(reviewer).POST("/v1/tasks/{id}/decide", {
  params: { path: { id: task.id } },
  body: { outcome: "APPROVE" },
});
if (decided.error) throw new Error(`${decided.error.code}: ${decided.error.detail}`);
console.log(decided.data.instance.states.map((state) => state.name).join());
