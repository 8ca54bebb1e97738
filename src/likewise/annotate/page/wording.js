// What the page says about a question and its answer.

export const NOTHING_LEFT = {
  grid: "Everything that can be asked is answered or in somebody else's hands. New questions come when leases end or the model is trained again.",
  pair: "No pair is left to ask about at the moment. Try grids.",
  outliers: "Outliers are asked of kinds that are known: there is no such group at the moment. Try grids.",
};

/** What Enter will say. */
export function submitText(question, chosen) {
  const all = question.tiles.length;
  if (question.kind === "outliers") {
    if (!chosen) return "All belong";
    return chosen === 1 ? "1 does not belong" : `${chosen} do not belong`;
  }
  if (!chosen) return all === 1 ? "Not the same" : "None of these";
  if (chosen === all) return all === 1 ? "The same" : "All of these";
  return chosen === 1 ? "1 is the same" : `${chosen} are the same`;
}

/** What was said, for those who listen. */
export function describe(question, chosen, unsure) {
  const doubt = unsure ? `, ${unsure} unsure` : "";
  return `Submitted: ${submitText(question, chosen).toLowerCase()}${doubt}.`;
}
