/** Compares what a case's calls did with what the case expects. */
import assert from 'node:assert/strict';
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { pageLines, said, type Case, type Expectation, type Outcome, type Scene } from './cases.js';

/** Reads a file of the scene, wherever its tree lives. */
export type ReadBack = (path: string) => Promise<Buffer | undefined>;

export async function checkCase({ expect }: Case, scene: Scene, read: ReadBack): Promise<void> {
  const { outcomes } = scene;
  checkOutcome(expect, outcomes);
  checkTexts(expect, scene, outcomes);
  checkPages(expect, outcomes);
  await checkFiles(expect, scene, read);
}

function checkOutcome({ outcome, words }: Expectation, outcomes: readonly Outcome[]): void {
  for (const { call, value, error } of outcomes) {
    const what = `${call.tool} ${JSON.stringify(call.args)?.slice(0, 200)} (${words})`;
    if (outcome === 'error') assert.ok(error, `${what}: expected a refusal, got ${JSON.stringify(value)}`);
    if (outcome === 'ok') assert.equal(error, undefined, `${what}: ${error?.code}: ${error?.message}`);
    if (error) assert.notEqual(error.code, 'INTERNAL', what);
  }
}

function checkTexts(expect: Expectation, scene: Scene, outcomes: readonly Outcome[]): void {
  const text = said(outcomes);
  if (expect.not_contains) assert.ok(!withoutEchoes(scene, outcomes).includes(scene.expand(expect.not_contains)), `must not say ${expect.not_contains}: ${text}`);
  if (expect.contains) assert.ok(text.includes(expect.contains), `must say ${expect.contains}: ${text}`);
  if (expect.contains_if_error) {
    for (const { error } of outcomes) if (error) assert.ok(error.message.includes(expect.contains_if_error), error.message);
  }
  if (expect.well_formed) assert.ok(text.isWellFormed() && !text.includes('\uFFFD'), 'answers must be well formed');
  // A bound against hanging, not a measurement: the machine may be busy, and the addon a debug build.
  if (expect.max_ms) for (const { call, ms } of outcomes) assert.ok(ms < expect.max_ms + 20_000, `${call.tool} took ${ms} ms`);
}

/** What was said, less the caller's own words that a message quotes. */
function withoutEchoes(scene: Scene, outcomes: readonly Outcome[]): string {
  const texts = outcomes.map((outcome) => {
    const own = Object.values(outcome.call.args).filter((value) => typeof value === 'string');
    return own.reduce((text, value) => text.replaceAll(scene.expand(value), ''), said([outcome]));
  });
  return texts.join('\n');
}

function checkPages(expect: Expectation, outcomes: readonly Outcome[]): void {
  if (expect.lines) {
    const pages = outcomes.filter(({ call, error }) => call.tool === 'read_file' && !error);
    assert.ok(pages.length > 0 || expect.outcome === 'ok_or_error', 'no page was read');
    const first = pages[0];
    if (first) assert.deepEqual(pageLines(first.value), expect.lines);
  }
}

async function checkFiles(expect: Expectation, scene: Scene, read: ReadBack): Promise<void> {
  for (const [path, text] of Object.entries(expect.files ?? {})) assert.equal((await read(path))?.toString('utf8'), text, path);
  for (const [path, hex] of Object.entries(expect.files_hex ?? {})) assert.equal((await read(path))?.toString('hex'), hex, path);
  if (expect.files_any) await matchesAny(expect.files_any, read, 'utf8');
  if (expect.files_hex_any) await matchesAny(expect.files_hex_any, read, 'hex');
  for (const path of expect.absent ?? []) assert.equal(await read(path), undefined, `${path} must not exist`);
  checkModes(expect, scene);
}

async function matchesAny(candidates: Record<string, string>[], read: ReadBack, encoding: 'utf8' | 'hex'): Promise<void> {
  const paths = Object.keys(candidates[0] ?? {});
  const actual = Object.fromEntries(await Promise.all(paths.map(async (path) => [path, (await read(path))?.toString(encoding)])));
  assert.ok(candidates.some((candidate) => JSON.stringify(candidate) === JSON.stringify(actual)), `found ${JSON.stringify(actual)}`);
}

function checkModes(expect: Expectation, scene: Scene): void {
  for (const [path, mode] of Object.entries(expect.modes ?? {})) {
    assert.equal((statSync(scene.host(path)).mode & 0o7777).toString(8).padStart(4, '0'), mode, path);
  }
  for (const [path, mode] of Object.entries(expect.modes_mask ?? {})) {
    const mask = parseInt(mode, 8);
    assert.equal(statSync(scene.host(path)).mode & mask, mask, path);
  }
}

export async function readOnDisk(scene: Scene, path: string): Promise<Buffer | undefined> {
  const host = scene.host(path);
  if (!existsSync(host) && !lstatSync(host, { throwIfNoEntry: false })) return undefined;
  return lstatSync(host).isFile() ? readFileSync(host) : Buffer.from('');
}
