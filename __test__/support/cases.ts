/** Runs the public-bug cases of cases/files.json: sets a scene up, makes its calls through the tools, compares. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFsTools, createGitTools, MemoryWorkspace, NodeWorkspace, WorkspaceError, type FsExtraToolName, type NodeWorkspaceOptions, type Tool } from 'croft';

export interface Step {
  op: string;
  [key: string]: unknown;
}

export interface Call {
  tool: string;
  args: Record<string, unknown>;
}

export interface Expectation {
  outcome: 'ok' | 'error' | 'ok_or_error';
  words: string;
  lines?: string[];
  total?: number;
  truncated?: boolean;
  next_offset?: number;
  files?: Record<string, string>;
  files_hex?: Record<string, string>;
  files_any?: Record<string, string>[];
  files_hex_any?: Record<string, string>[];
  absent?: string[];
  contains?: string;
  not_contains?: string;
  contains_if_error?: string;
  modes?: Record<string, string>;
  modes_mask?: Record<string, string>;
  well_formed?: boolean;
  max_ms?: number;
  max_bytes?: number;
  cleanup?: string;
  value?: unknown;
}

export interface Case {
  id: string;
  area: string;
  title: string;
  setup: Step[];
  call: Call[];
  expect: Expectation;
}

export interface Outcome {
  call: Call;
  value?: unknown;
  error?: WorkspaceError;
  ms: number;
  /** The code that the configuration's rules ask for, whatever the case expects. */
  byRule?: string | undefined;
}

/** The same cases in another arrangement of roots and options. */
export interface Configuration {
  name: string;
  /** Below the scene's own directory. Default `ws` and `out`. */
  root?: string;
  out?: string;
  /** Cases that mean something else here, and why. */
  leftOut: Record<string, string>;
  options(scene: Scene): NodeWorkspaceOptions;
  /** The arguments as they are here, and the refusal that a rule asks for. */
  adapt(scene: Scene, call: Call, input: Record<string, unknown>): { input: Record<string, unknown>; byRule?: string };
}

const EXTRA_TOOLS: FsExtraToolName[] = ['multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove', 'view_image'];

export type Workspace = NodeWorkspace | MemoryWorkspace;

/** The cases live beside the project, as they do for every checkout of it. */
export function loadCases(areas: readonly string[]): Case[] {
  const file = fileURLToPath(new URL('../../../shared/cases/files.json', import.meta.url));
  const cases = JSON.parse(readFileSync(file, 'utf8')) as Case[];
  return cases.filter(({ area }) => areas.includes(area));
}

/** One scene: a workspace, a place outside, and the tools. */
export class Scene {
  readonly tmp = mkdtempSync(join(tmpdir(), 'croft-case-'));
  readonly root: string;
  readonly out: string;
  readonly outcomes: Outcome[] = [];
  staleCheck = false;
  isRacing = false;
  workspace!: Workspace;
  tools!: Map<string, Tool>;

  constructor(readonly configuration?: Configuration) {
    this.root = join(this.tmp, configuration?.root ?? 'ws');
    this.out = join(this.tmp, configuration?.out ?? 'out');
    mkdirSync(this.root, { recursive: true });
    mkdirSync(this.out);
  }

  expand(text: string): string {
    return text.replaceAll('${ROOT}', this.root).replaceAll('${OUT}', this.out).replaceAll('${TMP}', this.tmp);
  }

  /** Where a case's path lies on the host. */
  host(path: string): string {
    const expanded = this.expand(path);
    return isAbsolute(expanded) ? expanded : join(this.root, expanded);
  }

  open(workspace: Workspace): void {
    this.workspace = workspace;
    const git = workspace instanceof NodeWorkspace ? createGitTools(workspace) : [];
    this.tools = new Map([...createFsTools(workspace, { include: EXTRA_TOOLS, staleCheck: this.staleCheck }), ...git].map((tool) => [tool.name, tool]));
  }

  async dispose(): Promise<void> {
    await this.workspace?.close();
    rmSync(this.tmp, { recursive: true, force: true });
  }
}

export function setUpOnDisk(scene: Scene, step: Step): void {
  const path = typeof step['path'] === 'string' ? scene.host(step['path']) : '';
  if (path) mkdirSync(dirname(path), { recursive: true });
  switch (step.op) {
    case 'file':
      writeFileSync(path, contentOf(step));
      if (step['mode']) chmodSync(path, parseInt(String(step['mode']), 8));
      if (step['uid'] !== undefined) chownSync(path, Number(step['uid']), Number(step['gid']));
      if (step['xattr']) setXattr(path, step['xattr']);
      return;
    case 'dir':
      mkdirSync(path, { recursive: true });
      return;
    case 'symlink':
      symlinkSync(scene.expand(String(step['target'])), path);
      return;
    case 'hardlink':
      linkSync(scene.host(String(step['target'])), path);
      return;
    case 'fifo':
      execFileSync('mkfifo', [path]);
      return;
    case 'sh':
      execFileSync('sh', ['-c', scene.expand(String(step['cmd']))], { cwd: scene.root, stdio: 'pipe' });
      return;
    case 'git':
      execFileSync('git', (step['args'] as string[]).map((arg) => scene.expand(arg)), { cwd: step['cwd'] ? scene.host(String(step['cwd'])) : scene.root, stdio: 'pipe' });
      return;
    case 'env':
      Object.assign(process.env, expandArgument(scene, step['vars']));
      return;
    case 'for':
      for (let k = 0; k < Number((step['k'] as unknown[])?.[1] ?? 0); k++) {
        for (const inner of [step['do']].flat() as Step[]) setUpOnDisk(scene, substitute(inner, k));
      }
      return;
    default:
      throw new Error(`unknown set-up step ${step.op}`);
  }
}

function substitute(step: Step, k: number): Step {
  return JSON.parse(JSON.stringify(step).replaceAll('${k}', String(k))) as Step;
}

function setXattr(path: string, xattr: unknown): void {
  for (const [name, value] of Object.entries(xattr as Record<string, string>)) {
    const script = 'import os,sys;os.setxattr(sys.argv[1],sys.argv[2],sys.argv[3].encode())';
    execFileSync('python3', ['-c', script, path, name, value]);
  }
}

export function contentOf(step: Step): Buffer {
  if (typeof step['hex'] === 'string') return Buffer.from(step['hex'], 'hex');
  const repeat = step['repeat'] as [string, number] | undefined;
  const body = repeat ? repeat[0].repeat(repeat[1]) : String(step['text'] ?? '');
  return Buffer.from(body + String(step['suffix'] ?? ''), 'utf8');
}

/** `{ repeat: [["x", 3], ...] }` stands for a long string. */
export function expandArgument(scene: Scene, value: unknown): unknown {
  if (typeof value === 'string') return scene.expand(value);
  if (Array.isArray(value)) return value.map((item) => expandArgument(scene, item));
  if (value === null || typeof value !== 'object') return value;
  const repeat = (value as { repeat?: [string, number][] }).repeat;
  if (repeat) return repeat.map(([text, times]) => text.repeat(times)).join('');
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expandArgument(scene, item)]));
}

export async function makeCall(scene: Scene, call: Call): Promise<void> {
  const tool = scene.tools.get(call.tool);
  if (!tool) throw new Error(`no tool ${call.tool}`);
  const given = expandArgument(scene, call.args) as Record<string, unknown>;
  const { input, byRule } = scene.configuration?.adapt(scene, call, given) ?? { input: given };
  const started = performance.now();
  const outcome: Outcome = { call, ms: 0, byRule };
  try {
    outcome.value = await tool.execute(input);
  } catch (error) {
    assert.ok(error instanceof WorkspaceError, `${call.tool} failed with ${String(error)}, not with a WorkspaceError`);
    outcome.error = error;
  }
  outcome.ms = performance.now() - started;
  scene.outcomes.push(outcome);
}

/** What a page shows: its lines without number, TAB and notes. */
export function pageLines(page: unknown): string[] {
  const lines = String(page).split('\n');
  return lines.filter((line) => /^ *\d+\t/.test(line)).map((line) => line.replace(/^ *\d+\t/, ''));
}

export function said(outcomes: readonly Outcome[]): string {
  return outcomes.map(({ value, error }) => (error ? error.message : JSON.stringify(value))).join('\n');
}
