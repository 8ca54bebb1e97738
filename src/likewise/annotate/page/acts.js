// What somebody did, from the server's facts: as something that can be shown again and taken back.

import { get, imageOf } from "./api.js";
import { count } from "./speak.js";

/** What this person did before, newest first, without what was taken back. */
export async function pastActs(limit = 50) {
  const facts = await get(`/api/history?limit=${limit}`);
  const list = Array.isArray(facts) ? facts : facts.facts;
  const undone = new Set(list.filter(({ kind }) => kind === "undo").map(({ body }) => body.fact));
  return list
    .filter((fact) => fact.kind !== "undo" && !undone.has(fact.id) && !fact.undone)
    .map(actOf);
}

function actOf({ id, kind, when, body, text }) {
  if (kind !== "answer") {
    const what = kind === "name" ? `the name “${body.name}”` : `${count(body.items.length, "item")} split off`;
    return { id, kind, when, body, text: what };
  }
  const { question } = body;
  const tile = (key) => ({ key, image: imageOf(key), name: null });
  const exemplar = question.exemplar ?? question.a ?? null;
  const tiles = question.candidates ?? question.items ?? [question.b];
  const shown = {
    id: body.question_id || id,
    kind: question.kind,
    text: text ?? "",
    exemplar: exemplar === null ? null : tile(exemplar),
    tiles: tiles.map(tile),
    expires: 0,
  };
  const { clicked = [], unsure = [], skipped = false } = body;
  return { id, kind, when, body, question: shown, clicked, unsure, skipped };
}
