/** The sentences with which tools answer; notes are lines of their own in square brackets. */
import type { HashEditResult, MultiEditResult, PatchedFile } from '../providers.js';

export interface Written {
  created: boolean;
  note?: string | undefined;
}

export function describeWrite(path: string, bytes: number, { created, note }: Written): string {
  const what = `${created ? 'Created' : 'Wrote'} ${JSON.stringify(path)} (${bytes} ${bytes === 1 ? 'byte' : 'bytes'}).`;
  return withNote(what, note);
}

export function describeEdit(path: string, { edits, changed, note }: MultiEditResult): string {
  if (!changed) return withNote(`${JSON.stringify(path)} is unchanged: old_string and new_string are the same.`, note);
  const { replacements = 0, firstLine = 0 } = edits[0] ?? {};
  return withNote(`Edited ${JSON.stringify(path)}: ${times(replacements, 'replacement')}, the first in line ${firstLine}.`, note);
}

export function describeMultiEdit(path: string, { edits, changed, note }: MultiEditResult): string {
  if (!changed) return withNote(`${JSON.stringify(path)} is unchanged: each old_string and new_string are the same.`, note);
  const each = edits.map(({ replacements, firstLine }, index) =>
    firstLine === 0 ? `edit ${index + 1}: no change` : `edit ${index + 1}: ${times(replacements, 'replacement')}, the first in line ${firstLine}`,
  );
  return withNote([`Edited ${JSON.stringify(path)}:`, ...each].join('\n'), note);
}

export function describeHashEdit(path: string, { changed, firstLine, linesAdded, linesRemoved }: HashEditResult): string {
  if (!changed) return `${JSON.stringify(path)} is unchanged: the new lines are the old ones.`;
  return `Edited ${JSON.stringify(path)} from line ${firstLine} on: ${times(linesAdded, 'line')} added, ${times(linesRemoved, 'line')} removed.`;
}

const PAST = { create: 'Created', update: 'Changed', delete: 'Deleted', rename: 'Renamed', copy: 'Copied' } as const;

export function describePatch(files: readonly PatchedFile[]): string {
  return files.flatMap((file) => [describePatched(file), ...patchNotes(file)]).join('\n');
}

function describePatched({ action, path, from, hunks, executable }: PatchedFile): string {
  const names = from === undefined ? JSON.stringify(path) : `${JSON.stringify(from)} to ${JSON.stringify(path)}`;
  const plain = executable === undefined || (action === 'create' && !executable);
  const mode = plain ? '' : executable ? ', executable' : ', not executable';
  return `${PAST[action]} ${names}${hunks.length > 0 ? `: ${times(hunks.length, 'hunk')}` : ''}${mode}.`;
}

function patchNotes({ path, hunks }: PatchedFile): string[] {
  const moved = hunks.filter(({ offset, fuzz }) => offset !== 0 || fuzz !== 0);
  return moved.map(({ hunk, line, offset, fuzz }) => {
    const where = offset === 0 ? '' : `, ${times(Math.abs(offset), 'line')} ${offset > 0 ? 'below' : 'above'} the place it names`;
    const less = fuzz === 0 ? '' : `, without ${times(fuzz, 'context line')} at each end`;
    return `[hunk ${hunk} of ${JSON.stringify(path)} was applied at line ${line}${where}${less}]`;
  });
}

function times(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function withNote(text: string, note: string | undefined): string {
  return note ? `${text}\n[${note}]` : text;
}
