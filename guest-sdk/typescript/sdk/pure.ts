// Flow logic has no clock and no randomness: the same facts give the same answer. Functions that need either throw an error.

const none = (what: string, instead: string) => (): never => {
  throw new Error(`Flow logic has no ${what}: ${instead}.`);
};
const noClock = none("clock", "take `facts.now`");

Math.random = none("randomness", "derive it from the facts");
Date.now = noClock;
globalThis.Date = new Proxy(Date, {
  construct: (target, given, as) => (given.length === 0 ? noClock() : Reflect.construct(target, given, as)),
  apply: noClock,
});
