// An approval by this client: node approval.js URL AUTHOR_TOKEN REVIEWER_TOKEN
import { connect, pages, ProblemError } from "@wrkflw/client";

const [baseUrl = "", authorToken = "", reviewerToken = ""] = process.argv.slice(2);
const author = connect({ baseUrl, token: authorToken });
const reviewer = connect({ baseUrl, token: () => reviewerToken });

const started = await author.POST("/v1/instances", {
  body: { definitionKey: "document-approval", entityType: "document", entityId: "packed", data: { title: "A plan" } },
});
const entity = { entityType: "document", entityId: "packed" };

const ids: string[] = [];
for await (const task of pages((after) =>
  reviewer.GET("/v1/tasks", { params: { query: { view: "available", ...entity, ...(after && { after }) } } }),
)) {
  ids.push(task.id);
}
const [id] = ids;
if (!id) throw new Error(`nobody can review ${started.data?.instance.id}`);

try {
  await author.POST("/v1/tasks/{id}/claim", { params: { path: { id } } });
  throw new Error("nobody reviews their own request");
} catch (error) {
  if (!(error instanceof ProblemError) || error.problem.code !== "forbidden") throw error;
}

const decided = await reviewer.POST("/v1/tasks/{id}/decide", { params: { path: { id } }, body: { outcome: "APPROVE" } });
console.log(decided.data?.instance.states.map((state) => state.name).join());
