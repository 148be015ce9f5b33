/** Every public-bug case about files on one backend; what a case says only in words is checked here by id. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createFsTools, MemoryWorkspace, NodeWorkspace, WorkspaceError } from 'croft';
import { contentOf, expandArgument, loadCases, makeCall, pageLines, said, Scene, setUpOnDisk, type Call, type Case, type Configuration, type Step } from './cases.js';
import { CONFINE_AREAS, takeRefusalsByRule } from './configurations.js';
import { checkCase, readOnDisk } from './expect.js';
import { whileSwapping } from './swap.js';
import { FUZZ_SEED, randomArguments } from './fuzz.js';
import { plainProvider } from './plain-provider.js';
import { endsInTime, inParallel, mixedWriters, readThenEdit, renameToolboxCalls, shortAnchors, TOOLBOX_AREAS, TOOLBOX_CHECKS } from './toolbox-cases.js';
import { abortedSoon, checkSearch, renameSearchArguments, SEARCH_AREAS, whileTheTimerTicks } from './search-cases.js';

export type Backend = 'disk' | 'memory' | 'provider';

/** Cases of other capabilities, by area prefix, join as those capabilities do. */
const AREAS = [...CONFINE_AREAS, 'read.lines', 'read.limits',
  'read.encoding', 'read.image', 'write.atomic', 'edit.match', 'edit.eol', 'list', 'api', ...TOOLBOX_AREAS, ...SEARCH_AREAS];

/** What also runs over somebody else's provider, which is not confined: searches must mean the same there. */
const PROVIDER_AREAS = ['list', ...SEARCH_AREAS];

const LEFT_OUT_OF_PROVIDER: Record<string, string> = {
  'RT-003': 'is about the native search; a provider is copied from first',
  'RT-005': 'is about the native search; a provider is copied from first',
};

/** Left out everywhere, and why. */
const LEFT_OUT: Record<string, string> = {
  'CS-008': 'is what the runs with openat2 denied do for every case',
  'NM-003': 'is about Windows; path::windows has the table',
};

/** What memory does not have: links, special files, owners, a disk to fill, a second process. */
const DISK_ONLY_STEPS = new Set(['symlink', 'hardlink', 'fifo', 'sh']);
const DISK_ONLY_CALLS = new Set(['race', 'env', 'parallel', 'sh', 'open_workspace', 'node', 'git_status', 'git_diff', 'git_commit']);

export function runFileCases(backend: Backend): void {
  for (const item of loadCases(backend === 'provider' ? PROVIDER_AREAS : AREAS).map(renameSearchArguments).map(renameToolboxCalls)) {
    const left = LEFT_OUT[item.id] ?? reasonNotOn(backend, item);
    test(`${item.id} ${item.title}`, { skip: left ?? false }, async () => await runCase(item, backend));
  }
}

function reasonNotOn(backend: Backend, item: Case): string | undefined {
  if (backend === 'memory') return reasonNotInMemory(item);
  return backend === 'provider' ? LEFT_OUT_OF_PROVIDER[item.id] : undefined;
}

function reasonNotInMemory({ setup, call, expect }: Case): string | undefined {
  if (Object.keys(expect.files ?? {}).some((path) => path.startsWith('$'))) return 'nothing lies outside a tree in memory';
  const step = setup.find(({ op }) => DISK_ONLY_STEPS.has(op));
  if (step) return `memory has no ${step.op}`;
  if (setup.some((one) => 'uid' in one || 'xattr' in one || 'mode' in one)) return 'memory is set up without modes, owners and attributes';
  const made = call.find(({ tool }) => DISK_ONLY_CALLS.has(tool));
  return made ? `memory has no ${made.tool}` : undefined;
}

/** The cases of confinement on disk in another arrangement; a call that goes another way there by rule is checked by that rule. */
export function runConfined(configuration: Configuration): void {
  for (const item of loadCases(CONFINE_AREAS).map(renameToolboxCalls)) {
    const left = LEFT_OUT[item.id] ?? configuration.leftOut[item.id];
    test(`${item.id} ${item.title}`, { skip: left ?? false }, async () => await runCase(item, 'disk', configuration));
  }
}

async function runCase(whole: Case, backend: Backend, configuration?: Configuration): Promise<void> {
  const scene = new Scene(configuration);
  let item = whole;
  const umask = process.umask();
  const environment = { ...process.env };
  scene.staleCheck = item.area === 'edit.stale';
  try {
    chmodSync(scene.tmp, 0o755);
    await setUp(scene, item, backend);
    await (SPECIAL[item.id] ?? makeCalls)(scene, item, backend);
    process.seteuid?.(0);
    item = takeRefusalsByRule(item, scene);
    await checkCase(item, scene, async (path) => await readBack(scene, path, backend));
    if (SEARCH_AREAS.includes(item.area)) checkSearch(item, scene);
    if (item === whole) await CHECKS[item.id]?.(scene, item);
  } finally {
    process.seteuid?.(0);
    process.umask(umask);
    restoreEnvironment(environment);
    const { cleanup } = item.expect;
    if (cleanup && backend !== 'memory') execFileSync('sh', ['-c', scene.expand(cleanup)], { stdio: 'pipe' });
    await scene.dispose();
  }
}

function restoreEnvironment(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
}

async function setUp(scene: Scene, item: Case, backend: Backend): Promise<void> {
  const umask = item.setup.find(({ cmd }) => /^umask \d+$/.test(String(cmd)));
  if (umask) process.umask(parseInt(String(umask['cmd']).slice(6), 8));
  const steps = item.setup.filter(({ cmd }) => !/^umask|CAP/.test(String(cmd)));
  if (backend !== 'memory') {
    if (item.id !== 'EN-009') for (const step of steps) setUpOnDisk(scene, step);
    scene.open(new NodeWorkspace(scene.configuration?.options(scene) ?? { root: scene.root }));
    if (backend === 'provider') scene.tools = new Map(createFsTools(plainProvider(scene.root)).map((tool) => [tool.name, tool]));
    return;
  }
  const workspace = new MemoryWorkspace({ files: SEARCH_AREAS.includes(item.area) ? repositories(steps) : {}, limits: { maxWriteBytes: 1 << 30 } });
  for (const step of steps) await setUpInMemory(scene, workspace, step);
  scene.open(workspace);
}

/** `git init` in memory: a `.git` directory, which only the constructor can make. */
function repositories(steps: readonly Step[]): Record<string, string> {
  const inits = steps.map((step) => step['args']).filter((args): args is string[] => Array.isArray(args) && args[0] === 'init');
  const folder = (args: string[]): string => (args.at(-1) === 'main' ? '' : `${args.at(-1)}/`);
  return Object.fromEntries(inits.map((args) => [`${folder(args)}.git/HEAD`, 'ref: refs/heads/main\n']));
}

/** Files outside do not exist beside a tree in memory. */
async function setUpInMemory(scene: Scene, workspace: MemoryWorkspace, step: Step): Promise<void> {
  const path = String(step['path'] ?? '');
  if (path.startsWith('$')) return;
  if (step.op === 'file') await workspace.writeFile(scene.expand(path), contentOf(step));
  if (step.op === 'dir') await workspace.mkdir(path);
}

async function makeCalls(scene: Scene, { call }: Case, backend?: Backend): Promise<void> {
  for (const one of call) {
    // A provider has file tools only.
    if (backend === 'provider' && one.tool.startsWith('git_')) continue;
    if (one.tool === 'sh') execFileSync('sh', ['-c', scene.expand(String(one.args['cmd']))], { stdio: 'pipe' });
    else if (one.tool === 'env') becomeUser(scene, Number(one.args['uid']));
    else if (one.tool === 'open_workspace') scene.open(openRoots(scene, one));
    else await makeCall(scene, one);
  }
}

/** Everything but what the case shut off is readable for the other user. */
function becomeUser(scene: Scene, uid: number): void {
  if (statSync(scene.root).uid === 0) chmodSync(scene.root, 0o777);
  for (const name of readdirSync(scene.root)) {
    const path = join(scene.root, name);
    if (lstatSync(path).isFile() && statSync(path).mode & 0o200 && name !== 'imm.txt') chmodSync(path, 0o666);
  }
  execFileSync('sh', ['-c', `chown ${uid} "$0"/* 2>/dev/null || true`, scene.root]);
  process.seteuid?.(uid);
}

/** The first is the root. A read-only one is a directory that is granted for reading. */
function openRoots(scene: Scene, { args }: Call): NodeWorkspace {
  const [root = '', ...more] = expandArgument(scene, args['roots']) as (string | { path: string })[];
  const roots = more.filter((one) => typeof one === 'string');
  const readable = more.filter((one) => typeof one === 'object').map(({ path }) => path);
  return new NodeWorkspace({ root: root as string, ...(roots.length > 0 && { roots }), ...(readable.length > 0 && { readable }) });
}

async function readBack(scene: Scene, path: string, backend: Backend): Promise<Buffer | undefined> {
  if (backend !== 'memory') return await readOnDisk(scene, path);
  if (path.startsWith('$')) return undefined;
  const found = await scene.workspace.stat(path);
  if (!found) return undefined;
  return found.type === 'file' ? await scene.workspace.readFileBytes(path) : Buffer.from('');
}

type Run = (scene: Scene, item: Case, backend: Backend) => Promise<void>;

/** As the root, and as one more root. */
async function refusesEachRoot(scene: Scene, { call }: Case): Promise<void> {
  for (const { tool, args } of call) {
    for (const roots of [args['roots'], [scene.root, ...(args['roots'] as string[])]]) {
      assert.throws(() => openRoots(scene, { tool, args: { roots } }), (error) => {
        assert.ok(error instanceof WorkspaceError);
        assert.ok(['INVALID_ARGUMENT', 'NOT_FOUND', 'NOT_DIRECTORY'].includes(error.code), error.code);
        return true;
      });
    }
  }
}

const RACE_SECONDS = 1;

async function race(scene: Scene, { call }: Case): Promise<void> {
  const [start, ...rest] = call;
  const swap = start?.args['swap'] as [string, string];
  scene.isRacing = true;
  await whileSwapping(scene.host(swap[0]), scene.host(swap[1]), RACE_SECONDS, async () => {
    for (const one of rest) await makeCall(scene, one);
  });
}

/** CAP files, or one more: the cap is reached exactly, or passed. */
async function atTheCap(scene: Scene, item: Case, backend: Backend, files: number): Promise<void> {
  for (let i = 1; i <= files; i++) {
    if (backend === 'disk') writeFileSync(join(scene.root, `f${i}.txt`), 'needle\n');
    else await scene.workspace.writeFile(`f${i}.txt`, 'needle\n');
  }
  await makeCalls(scene, item);
  const expected = item.expect.truncated === true;
  const globbed = await scene.workspace.glob('*.txt');
  const grepped = await scene.workspace.grep('needle');
  assert.deepEqual([globbed.paths.length, globbed.truncated], [200, expected]);
  assert.deepEqual([grepped.matches.length, grepped.truncated], [200, expected]);
  for (const { value } of scene.outcomes) assert.equal(/^\[.*200/m.test(String(value)), expected, String(value).slice(-200));
}

async function sampleBoundaries(scene: Scene): Promise<void> {
  for (const size of [512, 1000, 1024, 4096, 8000, 8192, 65536]) {
    for (let k = 0; k < 3; k++) {
      const name = `s${size}_${k}.md`;
      await scene.workspace.writeFile(name, 'a'.repeat(k) + '\u81ea'.repeat(Math.ceil((size + 60) / 3)));
      await makeCall(scene, { tool: 'read_file', args: { path: name, limit: 1 } });
    }
  }
}

async function neverHalf(scene: Scene): Promise<void> {
  const path = join(scene.root, 'big.txt');
  const end = performance.now() + 2000;
  let last = 'A';
  while (performance.now() < end) {
    last = last === 'A' ? 'B' : 'A';
    const writing = scene.workspace.writeFile('big.txt', last.repeat(8_000_000));
    for (let i = 0; i < 3; i++) {
      const seen = readFileSync(path, 'latin1');
      assert.equal(seen.length, 8_000_000);
      assert.ok(/^A+$/.test(seen) || /^B+$/.test(seen), 'a mixed file was seen');
      await new Promise(setImmediate);
    }
    await writing;
  }
}

/** The same calls on disk and in memory: equal results and codes. */
async function twin(scene: Scene, item: Case, backend: Backend): Promise<void> {
  if (backend === 'memory') return;
  const other = new Scene();
  const memory = new MemoryWorkspace();
  for (const step of item.setup) await setUpInMemory(other, memory, step);
  other.open(memory);
  for (const call of item.call[0]?.args['calls'] as Call[]) {
    await makeCall(scene, call);
    await makeCall(other, call);
    const [here, there] = [scene.outcomes.at(-1), other.outcomes.at(-1)];
    assert.deepEqual([here?.value, here?.error?.code, here?.error?.message], [there?.value, there?.error?.code, there?.error?.message], JSON.stringify(call));
  }
  scene.outcomes.length = 0;
  await other.dispose();
}

async function fuzz(scene: Scene): Promise<void> {
  const next = randomArguments(FUZZ_SEED, scene.tools);
  for (let i = 0; i < 10_000; i++) {
    const { tool, input } = next();
    try {
      await tool.execute(input);
    } catch (error) {
      const what = `${tool.name} ${inspect(input)}: ${inspect(error)}`;
      assert.ok(error instanceof WorkspaceError, what);
      assert.notEqual(error.code, 'INTERNAL', what);
    }
  }
}

/** Absolute paths come with `roots`: the root through a link, then one more root through a link. */
async function throughAlias(scene: Scene, { call }: Case): Promise<void> {
  const [open, relative, absolute] = call as [Call, Call, Call];
  const [alias] = open.args['roots'] as [string];
  for (const [roots, reads] of [[[alias, scene.out], [relative, absolute]], [[scene.out, alias], [absolute]]] as const) {
    await scene.workspace.close();
    scene.open(openRoots(scene, { ...open, args: { roots } }));
    for (const read of reads) await makeCall(scene, read);
  }
}

async function refusesProc(scene: Scene, { call }: Case): Promise<void> {
  for (const roots of [['/proc/self'], [scene.root, '/proc/self']]) {
    assert.throws(() => openRoots(scene, { ...(call[0] as Call), args: { roots } }), { name: 'WorkspaceError', code: 'NOT_DIRECTORY' });
  }
}

async function withBigLimit(scene: Scene, item: Case, backend: Backend): Promise<void> {
  scene.tools = new Map(createFsTools(scene.workspace, { maxFileBytes: 1 << 30 }).map((tool) => [tool.name, tool]));
  const before = process.memoryUsage.rss();
  await makeCalls(scene, item);
  if (backend === 'disk') assert.ok(process.memoryUsage.rss() - before < 16 * 1024 * 1024, 'a page must not load the file');
}

const SPECIAL: Record<string, Run> = {
  'CP-008': refusesEachRoot,
  'CP-013': throughAlias,
  'SP-006': refusesProc,
  'CR-001': race,
  'CR-004': race,
  'CR-005': race,
  'RM-004': withBigLimit,
  'RM-008': async (scene, item, backend) => await atTheCap(scene, item, backend, 200),
  'RM-009': async (scene, item, backend) => await atTheCap(scene, item, backend, 201),
  'EN-009': sampleBoundaries,
  'EN-011': async (scene) => {
    await makeCall(scene, { tool: 'write_file', args: { path: 'f.txt', content: 'a\ud83db' } });
    await makeCall(scene, { tool: 'write_file', args: { path: 'new.txt', content: '\ud83d' } });
  },
  'WA-014': neverHalf,
  'HA-001': shortAnchors,
  'ST-001': readThenEdit,
  'ST-004': inParallel,
  'ST-006': mixedWriters,
  'GS-017': endsInTime,
  'AP-001': fuzz,
  'AP-003': twin,
  'RT-003': whileTheTimerTicks,
  'RT-005': abortedSoon,
};

type Check = (scene: Scene, item: Case) => Promise<void> | void;

/** The refusals are the policy's, less a patch, which names files of the first root only; reading is allowed. */
async function readOnlyRoot(scene: Scene): Promise<void> {
  for (const { call, error } of scene.outcomes) assert.equal(error?.code, call.tool === 'apply_patch' ? 'OUTSIDE_WORKSPACE' : 'POLICY_DENIED', call.tool);
  assert.equal(await scene.workspace.readFile(`${scene.tmp}/ro/f.txt`), 'a\n');
}

const codes = ({ outcomes }: Scene): (string | undefined)[] => outcomes.map(({ error }) => error?.code);

/** What the cases say in words. */
const CHECKS: Record<string, Check> = {
  ...TOOLBOX_CHECKS,
  'CP-001': (scene) => assert.deepEqual(codes(scene), ['OUTSIDE_WORKSPACE', 'OUTSIDE_WORKSPACE']),
  'CP-013': ({ outcomes }) => assert.deepEqual(outcomes.map(({ value }) => pageLines(value)), [['in'], ['in'], ['in']]),
  'CP-014': readOnlyRoot,
  'CP-015': readOnlyRoot,
  'CP-009': (scene) => assert.deepEqual(pageLines(scene.outcomes[0]?.value), ['B']),
  'CS-012': (scene) => assert.deepEqual(pageLines(scene.outcomes[0]?.value), ['in']),
  'CS-013': (scene) => assert.equal(scene.outcomes[1]?.value, 'docs/a.md:1: in'),
  'CS-017': (scene) => assert.equal(scene.outcomes[0]?.value, 'db/schema.sql:1: CREATE TABLE business'),
  'CR-004': (scene) => assert.equal(statSync(join(scene.out, 'victim')).mode & 0o777, 0o600),
  'SP-010': (scene) => assert.deepEqual(codes(scene), ['IS_DIRECTORY', 'IS_DIRECTORY', 'IS_DIRECTORY']),
  'SP-008': (scene) => assert.equal(readFileSync(join(scene.root, 'h.txt'), 'utf8'), 'NEW\n'),
  'NM-002': (scene) => assert.deepEqual(String(scene.outcomes[1]?.value).split('\n'), ['COM1.txt', 'aux.c', 'con']),
  'NM-011': (scene) => assert.match(said(scene.outcomes), /Sn\u00edmek v|U\+00A0/i),
  'NM-016': (scene) => assert.deepEqual(new Set(codes(scene)), new Set(['INVALID_PATH'])),
  'PG-001': (scene) => assert.deepEqual(new Set(codes(scene)), new Set(['PROTECTED_PATH'])),
  'RL-002': (scene) => assert.match(String(scene.outcomes[0]?.value), /lines 1-2 of 3.*offset.*3/),
  'RL-004': (scene) => {
    assert.deepEqual(codes(scene), ['OFFSET_PAST_END']);
    assert.match(said(scene.outcomes), /3 lines/);
  },
  'RL-005': (scene) => assert.deepEqual(codes(scene), ['INVALID_ARGUMENT']),
  'RL-007': (scene) => assert.equal(scene.outcomes[0]?.value, 'mod.py:6:     SECRET_TARGET = 1'),
  'RL-009': (scene) => assert.match(String(scene.outcomes[0]?.value), /^\[.*CRLF/m),
  'RL-012': (scene) => assert.match(String(scene.outcomes[0]?.value), /empty/),
  'RM-001': (scene) => {
    const page = String(scene.outcomes[0]?.value);
    assert.ok(page.length <= 50_000);
    assert.match(page, /2,?000,?000/);
  },
  'EN-007': (scene) => {
    assert.equal(scene.outcomes[0]?.error?.code, 'BINARY_FILE');
    assert.match(String(scene.outcomes[0]?.error?.message), /15/);
    assert.match(String(scene.outcomes[1]?.value), /^a\.txt:1: needle/);
  },
  'EN-013': (scene) => {
    assert.equal(scene.outcomes[1]?.error?.code, 'EDIT_NO_MATCH');
    assert.match(String(scene.outcomes[1]?.error?.message), /curly|quotes/);
  },
  'IM-001': (scene) => assert.match(String(scene.outcomes[0]?.value), /"format":"png"/),
  'IM-002': (scene) => assert.match(said(scene.outcomes), /JPEG[\s\S]*PNG/i),
  'WA-004': (scene) => {
    const { uid, gid } = statSync(join(scene.root, 'o.txt'));
    assert.deepEqual([uid, gid], [1000, 1000]);
  },
  'WA-005': (scene) => {
    const script = 'import os,sys;print(os.getxattr(sys.argv[1],"user.at1").decode())';
    assert.equal(execFileSync('python3', ['-c', script, join(scene.root, 'x.txt')], { encoding: 'utf8' }), 'v1\n');
  },
  'WA-006': (scene) => assert.equal(readlinkSync(join(scene.root, 'ln.txt')), 'real.txt'),
  'WA-009': (scene) => assert.deepEqual(readdirSync(join(scene.root, 'ro')), ['f.txt']),
  'WA-010': (scene) => {
    assert.deepEqual(codes(scene), ['NO_SPACE']);
    assert.deepEqual(readdirSync(join(scene.root, 'small')), ['f.txt']);
  },
  'WA-016': () => assert.equal(process.umask(), 0o77),
  'ED-003': (scene) => assert.match(said(scene.outcomes), /2 times.*lines 1, 3/),
  'ED-004': (scene) => assert.match(said(scene.outcomes), /2 replacements/),
  'ED-006': (scene) => assert.deepEqual(codes(scene), ['EDIT_AMBIGUOUS']),
  'ED-007': (scene) => assert.deepEqual(new Set(codes(scene)), new Set(['INVALID_ARGUMENT'])),
  'EO-001': async (scene) => assert.equal(await scene.workspace.readFile('w.txt'), 'ONE\r\nTWO\r\nthree\r\n'),
  'EO-002': async (scene) => assert.equal(await scene.workspace.readFile('w.txt'), 'a\r\nb1\r\nb2\r\nc\r\n'),
  'EO-006': (scene) => assert.match(said(scene.outcomes), /CRLF/),
  'LD-003': (scene) => assert.match(said(scene.outcomes), /shut|1 director/),
  'LD-004': (scene) => {
    const expected = ['10', '9', 'A', 'Z', '_x', 'a', 'b', 'é'];
    for (const { value } of scene.outcomes) assert.deepEqual(String(value).split('\n'), expected);
  },
  'LD-005': (scene) => {
    const lines = String(scene.outcomes[0]?.value).split('\n');
    assert.equal(lines[0], 'd/');
    assert.equal(lines[1], 'f');
    assert.match(String(lines[2]), /^lf/);
    assert.doesNotMatch(String(lines[3]), /\/$/);
  },
  'AP-006': (scene) => {
    assert.equal(codes(scene)[0], 'NOT_FOUND');
    assert.equal(codes(scene)[2], codes(scene)[3]);
  },
};

/** A check for a case that does not exist would never fail. */
export function checkIds(): void {
  const ids = new Set(loadCases(AREAS).map(({ id }) => id));
  for (const id of [...Object.keys(CHECKS), ...Object.keys(SPECIAL), ...Object.keys(LEFT_OUT)]) assert.ok(ids.has(id), `no case ${id}`);
}
