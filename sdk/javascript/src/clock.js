// A component has no clock, and asking for one would end the call without a word.

/** From here on, asking for the time is an error that says where it is. An instant that is given is read as ever. */
export function takeClockAway() {
  const Given = globalThis.Date;
  const none = () => {
    throw new Error("a policy has no clock: the time is turn.now.unixMs");
  };
  globalThis.Date = class Date extends Given {
    constructor(...given) {
      if (given.length === 0) none();
      super(...given);
    }
    static now() {
      return none();
    }
  };
}
