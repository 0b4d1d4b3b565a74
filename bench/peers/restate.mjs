// The two-review approval as a Restate workflow: two durable promises, which callers resolve through the ingress.
import http2 from "node:http2";

// Node 20 has no Promise.withResolvers yet.
Promise.withResolvers ??= () => {
  let resolve, reject;
  const promise = new Promise((yes, no) => { resolve = yes; reject = no; });
  return { promise, resolve, reject };
};
const restate = await import("@restatedev/restate-sdk");

const review = restate.workflow({
  name: "review",
  handlers: {
    run: async (context, document) => {
      context.set("document", document);
      for (const n of [1, 2]) {
        const decision = await context.promise(`review${n}`);
        context.set(`review${n}`, decision);
        if (decision.outcome !== "APPROVE") return "REJECTED";
      }
      return "APPROVED";
    },
    decide: restate.handlers.workflow.shared(async (context, decision) => {
      await context.promise(`review${decision.n}`).resolve({ who: decision.who, outcome: decision.outcome });
      return "ok";
    }),
  },
});

const handler = restate.createEndpointHandler({ services: [review] });
http2.createServer(handler).listen(Number(process.env.PORT), "127.0.0.1");
