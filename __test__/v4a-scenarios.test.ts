// The envelope of V4A (`*** Begin Patch`), behaviour by behaviour as the format's published scenarios name them, on
// inputs of our own. Where croft is stricter than the format's own tool the title says so; docs/patches.md has the rule.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MemoryWorkspace } from 'croft';

type Files = Record<string, string>;
type Outcome = { files: Files } | { code: string; says: RegExp };
const refused = (code: string, says: RegExp): Outcome => ({ code, says });
const lines = (...text: string[]): string => text.join('\n');
const envelope = (...body: string[]): string => lines('*** Begin Patch', ...body, '*** End Patch');

const SCENARIOS: [title: string, before: Files, patch: string, outcome: Outcome][] = [
  ['001 a file is added', {}, envelope('*** Add File: notes.md', '+first', '+second'), { files: { 'notes.md': 'first\nsecond\n' } }],
  ['002 adding, changing and deleting in one patch', { 'old.txt': 'gone\n', 'kept.txt': 'a\nb\n' },
    envelope('*** Add File: deep/new.txt', '+new', '*** Delete File: old.txt', '*** Update File: kept.txt', '@@', '-b', '+c'),
    { files: { 'deep/new.txt': 'new\n', 'kept.txt': 'a\nc\n' } }],
  ['003 several chunks of one file', { 'f.txt': '1\n2\n3\n4\n' }, envelope('*** Update File: f.txt', '@@', '-2', '+two', '@@', '-4', '+four'), { files: { 'f.txt': '1\ntwo\n3\nfour\n' } }],
  ['004 a move into a new directory leaves its neighbours', { 'old/a.txt': 'x\n', 'old/b.txt': 'y\n' },
    envelope('*** Update File: old/a.txt', '*** Move to: new/dir/a.txt', '@@', '-x', '+z'), { files: { 'new/dir/a.txt': 'z\n', 'old/b.txt': 'y\n' } }],
  ['005 a patch without a section is refused', { 'f.txt': 'x\n' }, envelope(), refused('PATCH_INVALID', /no|empty/i)],
  ['006 context that is not there is refused', { 'f.txt': 'a\nb\n' }, envelope('*** Update File: f.txt', '@@', '-missing', '+x'), refused('PATCH_CONFLICT', /does not fit/)],
  ['007 deleting what is not there is refused', { 'f.txt': 'x\n' }, envelope('*** Delete File: missing.txt'), refused('NOT_FOUND', /missing\.txt/)],
  ['008 an update without a change is refused', { 'f.txt': 'x\n' }, envelope('*** Update File: f.txt'), refused('PATCH_INVALID', /no changes/)],
  ['009 an update needs its file', { 'f.txt': 'x\n' }, envelope('*** Update File: missing.txt', '@@', '-x', '+y'), refused('NOT_FOUND', /missing\.txt/)],
  ['010 stricter: a move does not replace a file', { 'a.txt': 'from\n', 'b/c.txt': 'there\n' },
    envelope('*** Update File: a.txt', '*** Move to: b/c.txt', '@@', '-from', '+new'), refused('ALREADY_EXISTS', /b\/c\.txt/)],
  ['011 stricter: an addition does not replace a file', { 'f.txt': 'old\n' }, envelope('*** Add File: f.txt', '+new'), refused('ALREADY_EXISTS', /f\.txt/)],
  ['012 a directory is not deleted', { 'dir/f.txt': 'x\n' }, envelope('*** Delete File: dir'), refused('IS_DIRECTORY', /dir/)],
  ['013 an unknown section is refused', { 'f.txt': 'x\n' }, envelope('*** Frobnicate File: f.txt'), refused('PATCH_INVALID', /Frobnicate/)],
  ['014 stricter: a file that had no final newline gets none', { 'f.txt': 'a\nlast' }, envelope('*** Update File: f.txt', '@@', '-last', '+new last', '+more'), { files: { 'f.txt': 'a\nnew last\nmore' } }],
  ['015 stricter: nothing is left of a patch whose second half fails', {}, envelope('*** Add File: made.txt', '+x', '*** Update File: missing.txt', '@@', '-a', '+b'), refused('NOT_FOUND', /missing\.txt/)],
  ['016 a chunk that only adds goes to the end', { 'f.txt': 'a\nb\n' }, envelope('*** Update File: f.txt', '@@', '+c', '+d'), { files: { 'f.txt': 'a\nb\nc\nd\n' } }],
  ['017 blanks around a section line', { 'f.txt': 'x\n' }, envelope('  *** Update File: f.txt', '@@', '-x', '+y'), { files: { 'f.txt': 'y\n' } }],
  ['018 blanks around the markers', { 'f.txt': 'x\n' }, lines(' *** Begin Patch', '*** Update File: f.txt', '@@', '-x', '+y', '*** End Patch '), { files: { 'f.txt': 'y\n' } }],
  ['019 text beyond ASCII', { 'f.txt': 'naïve café\n日本\n' }, envelope('*** Update File: f.txt', '@@', ' naïve café', '-日本', '+日本語 ✅'), { files: { 'f.txt': 'naïve café\n日本語 ✅\n' } }],
  ['020 a file is deleted and its neighbour stays', { 'gone.txt': 'x\n', 'kept.txt': 'y\n' }, envelope('*** Delete File: gone.txt'), { files: { 'kept.txt': 'y\n' } }],
  ['021 a chunk that only deletes', { 'f.txt': '1\n2\n3\n' }, envelope('*** Update File: f.txt', '@@', ' 1', '-2', ' 3'), { files: { 'f.txt': '1\n3\n' } }],
  ['022 a chunk for the end of the file', { 'f.txt': 'x\nend\nx\nend\n' }, envelope('*** Update File: f.txt', '@@', ' x', '-end', '+the end', '*** End of File'), { files: { 'f.txt': 'x\nend\nx\nthe end\n' } }],
];

async function textOf(workspace: MemoryWorkspace): Promise<Files> {
  return Object.fromEntries(Object.entries(workspace.snapshot()).map(([path, content]) => [path, Buffer.from(content).toString()]));
}

describe('V4A', () => {
  for (const [title, before, patch, outcome] of SCENARIOS) {
    test(title, async () => {
      await using workspace = new MemoryWorkspace({ files: before });
      if ('files' in outcome) {
        await workspace.applyPatch(patch);
        assert.deepEqual(await textOf(workspace), outcome.files);
        return;
      }
      await assert.rejects(workspace.applyPatch(patch), (error: { code: string; message: string }) => {
        assert.equal(error.code, outcome.code, error.message);
        assert.match(error.message, outcome.says);
        return true;
      });
      assert.deepEqual(await textOf(workspace), before);
    });
  }
});
