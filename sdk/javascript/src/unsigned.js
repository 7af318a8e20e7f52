// What comes in. The engine hands an unsigned number of 32 bits over as a signed one: from half of the range on it arrives
// negative. Offsets are left alone, for no text is as long as that.

export function turnOf(turn) {
  unsigned(turn, "seed");
  return turn;
}

export function dialogOf(dialog) {
  unsigned(dialog, "schema");
  return dialog;
}

export function requestOf(request) {
  unsigned(request, "promptTokens");
  unsigned(request, "messages");
  if (request.maxTokens != null) unsigned(request, "maxTokens");
  return request;
}

export function fleetOf(fleet) {
  for (let at = 0; at < fleet.length; at += 1) {
    unsigned(fleet[at], "queueDepth");
    unsigned(fleet[at], "freeBlocks");
    unsigned(fleet[at], "cachedTokens");
  }
  return fleet;
}

export function budgetOf(budget) {
  unsigned(budget, "keepTokens");
  unsigned(budget, "promptTokens");
  return budget;
}

export function windowsOf(windows) {
  for (let at = 0; at < windows.length; at += 1) unsigned(windows[at], "streamId");
  return windows;
}

function unsigned(record, name) {
  record[name] >>>= 0;
}
