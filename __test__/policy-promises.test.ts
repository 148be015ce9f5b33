// The tools a policy offers are exactly those that can do something, and its instructions promise nothing it refuses.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createGitTools, createWorkspaceTools, NodeWorkspace, type NodeWorkspaceOptions, type Tool, WorkspaceError } from 'croft';

const FILES = ['a.txt', 'src/b.txt', 'docs/c.txt', 'secrets/key', '.env', 'package-lock.json', '.venv/bin/python', '.git/HEAD'];

const READ = ['read_file', 'list_dir', 'glob', 'grep', 'view_image'];
const WRITE = ['write_file', 'edit_file', 'multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove'];
const SHELL = ['shell', 'read_process_output', 'kill_process'];
const GIT = ['git_status', 'git_diff'];
const COMMIT = ['git_commit'];
const WITHOUT_SHELL = [...READ, ...WRITE, ...GIT, ...COMMIT];
const ALL = [...WITHOUT_SHELL, ...SHELL];
const READ_ONLY = [...READ, ...GIT];

type Options = Partial<NodeWorkspaceOptions>;
type Variant = [what: string, options: Options, tools: string[]];

const rule = (action: 'allow' | 'ask' | 'deny', pattern: string): { action: 'allow' | 'ask' | 'deny'; pattern: string } => ({ action, pattern });

/** `out` stands for a folder outside the root. */
function variants(out: string): Variant[] {
  const all: Variant[] = [
    ['no policy at all', {}, ALL],
    ['readonly', { mode: 'readonly' }, READ_ONLY],
    ['coding', { mode: 'coding' }, ALL],
    ['trusted', { mode: 'trusted' }, ALL],
    ['readonly, nobody to ask', { mode: 'readonly', asks: 'deny' }, READ_ONLY],
    ['coding, nobody to ask', { mode: 'coding', asks: 'deny' }, WITHOUT_SHELL],
    ['trusted, nobody to ask', { mode: 'trusted', asks: 'deny' }, ALL],
    ['nobody to ask', { asks: 'deny' }, ALL],
    ['coding, nobody to ask, one command allowed', { mode: 'coding', asks: 'deny', commandRules: [rule('allow', 'ls')] }, ALL],
    ['readonly with grants', { mode: 'readonly', readable: [out], writable: ['src', out] }, READ_ONLY],
    ['links refused', { mode: 'coding', symlinks: 'deny' }, ALL],
    ['no mode, some commands allowed', { commandRules: [rule('allow', 'ls'), rule('allow', 'npm test')] }, ALL],
    ['spelled out: no shell', { policy: { shell: 'none' } }, WITHOUT_SHELL],
    ['spelled out: nothing but reading', { policy: { shell: 'none', writeInside: 'deny' } }, READ_ONLY],
    ['spelled out: shell denied', { policy: { shell: 'deny' } }, WITHOUT_SHELL],
    ['spelled out: shell denied but for one', { policy: { shell: 'deny', commandRules: [rule('allow', 'ls'), rule('ask', 'make')] } }, ALL],
    ['spelled out: shell denied but for what is asked', { policy: { shell: 'deny', commandRules: [rule('ask', 'make')] } }, ALL],
    ['spelled out: shell denied but for what cannot be certain', { policy: { shell: 'deny', commandRules: [rule('allow', 'sh')] } }, ALL],
    ['spelled out: writes asked', { policy: { writeInside: 'ask', writeOutside: 'ask', readOutside: 'allow', shell: 'ask' } }, ALL],
    ['spelled out: writes where granted', { policy: { writeInside: 'deny', writable: ['src', 'gen/*'], shell: 'none' } }, WITHOUT_SHELL],
    ['spelled out: writes where a rule allows', { policy: { writeInside: 'deny', pathRules: [rule('allow', 'src')], shell: 'none' } }, WITHOUT_SHELL],
    ['spelled out: writes where a rule asks', { policy: { writeInside: 'deny', pathRules: [rule('ask', 'docs')], shell: 'none' } }, WITHOUT_SHELL],
    ['spelled out: writes granted and denied', { policy: { writeInside: 'deny', writable: ['src'], deniedPaths: ['src'], shell: 'none' } }, READ_ONLY],
    ['spelled out: writes outside only', { policy: { writeInside: 'deny', writeOutside: 'ask', shell: 'none' } }, WITHOUT_SHELL],
    ['spelled out: writes asked, nobody to ask', { asks: 'deny', policy: { writeInside: 'ask', shell: 'ask' } }, READ_ONLY],
  ];
  for (const mode of ['coding', 'trusted'] as const) {
    all.push(
      [`${mode}, denials and grants`, { mode, deniedPaths: ['.env*', 'secrets', 'tmp'], readable: [out, '~/nothing'], writable: ['src', 'secrets'] }, ALL],
      [`${mode}, path rules`, { mode, pathRules: [{ ...rule('deny', 'docs'), ops: ['write'] }, { ...rule('ask', 'src'), ops: ['read'] }, rule('ask', 'gen*'), rule('allow', out)] }, ALL],
      [`${mode}, a rule about what is denied`, { mode, deniedPaths: ['secrets'], pathRules: [rule('ask', 'secrets'), rule('allow', 'docs'), rule('deny', 'docs')] }, ALL],
      [`${mode}, no write anywhere`, { mode, pathRules: [{ ...rule('deny', '*'), ops: ['write'] }], writable: ['src'] }, [...READ_ONLY, ...SHELL]],
      [`${mode}, command rules that contradict`, { mode, commandRules: [rule('deny', 'npm'), rule('allow', 'npm test'), rule('deny', 'git push'), rule('ask', 'git'), rule('ask', 'git push'), rule('allow', 'ls')] }, ALL],
      [`${mode}, all commands denied but one`, { mode, commandRules: [rule('allow', 'ls'), rule('deny', '*')] }, ALL],
      [`${mode}, all commands denied`, { mode, commandRules: [rule('deny', '*'), rule('allow', 'ls')] }, WITHOUT_SHELL],
      [`${mode}, all commands allowed`, { mode, commandRules: [rule('deny', 'rm'), rule('allow', '*')] }, ALL],
    );
  }
  return all;
}

async function withVariants(run: (what: string, workspace: NodeWorkspace, tools: string[], out: string) => Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'croft-promises-')));
  const [root, out] = [join(folder, 'ws'), join(folder, 'out')];
  for (const path of FILES) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), '');
  }
  symlinkSync('a.txt', join(root, 'link'));
  mkdirSync(out);
  try {
    for (const [what, options, tools] of variants(out)) {
      const workspace = new NodeWorkspace({ root, ...options });
      try {
        await run(what, workspace, tools, out);
      } finally {
        await workspace.close();
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function offered(workspace: NodeWorkspace): Tool[] {
  const include = ['multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove', 'view_image'] as const;
  return [...createWorkspaceTools(workspace, { fs: { include: [...include] } }), ...createGitTools(workspace)];
}

test('the tools are exactly those that the policy lets do something', async () => {
  await withVariants(async (what, workspace, expected, out) => {
    const names = offered(workspace).map(({ name }) => name);
    assert.deepEqual([...names].sort(), [...expected].sort(), what);
    const paths = ['a.txt', 'src/new', 'docs/new', 'gen/new', join(out, 'new')];
    const lines = ['unheard-of', 'ls', 'npm test', 'make', 'sh'];
    const can = {
      read: paths.some((path) => workspace.decidePath(path, 'read').action !== 'deny'),
      write: paths.some((path) => workspace.decidePath(path, 'write').action !== 'deny'),
      run: lines.some((line) => workspace.decideCommand(line).action !== 'deny'),
    };
    const needs = (name: string): keyof typeof can => (SHELL.includes(name) ? 'run' : [...WRITE, ...COMMIT].includes(name) ? 'write' : 'read');
    for (const name of names) assert.ok(can[needs(name)], `${what}: ${name} can do nothing`);
    // And nothing that could be used is withheld, but for `readonly`, which has no writing tools whatever is granted.
    if (can.run) assert.ok(names.includes('shell'), what);
    if (can.write && !what.startsWith('readonly')) assert.ok(names.includes('write_file'), what);
  });
});

/** One workspace, asked whether a sentence is true. */
class Listener {
  private readonly tools: Map<string, Tool>;

  constructor(
    private readonly workspace: NodeWorkspace,
    private readonly named: string[],
    private readonly isConfigured: boolean,
  ) {
    this.tools = new Map(offered(workspace).map((tool) => [tool.name, tool]));
  }

  has(...names: string[]): void {
    for (const name of names) assert.ok(this.tools.has(name), `there is no ${name}`);
  }

  hasNot(...names: string[]): void {
    for (const name of names) assert.ok(!this.tools.has(name), `there is ${name}`);
  }

  async path(op: 'read' | 'write', path: string, expected: string): Promise<void> {
    assert.equal(this.workspace.decidePath(path, op).action, expected, `${op} ${path}`);
    const tool = this.tools.get(op === 'read' ? 'read_file' : 'write_file');
    if (op === 'read' || expected !== 'deny') assert.ok(tool, `no tool to ${op} ${path}`);
    if (tool && expected !== 'deny') assert.equal(await tool.needsApproval({ path, content: '' }), expected === 'ask', `${op} ${path}`);
  }

  possible(op: 'read' | 'write', path: string): void {
    assert.notEqual(this.workspace.decidePath(path, op).action, 'deny', `${op} ${path}`);
    this.has(op === 'read' ? 'read_file' : 'write_file');
  }

  async command(line: string, expected: string): Promise<void> {
    assert.equal(this.workspace.decideCommand(line).action, expected, line);
    // Without any policy option the shell tool asks, whatever the workspace lets pass.
    if (expected !== 'deny') assert.equal(await this.tools.get('shell')?.needsApproval({ command: line }), expected === 'ask' || !this.isConfigured, line);
  }

  /** Outside, where nothing is granted. */
  async outside(op: 'read' | 'write', said: string): Promise<void> {
    const action = said === 'is allowed' ? 'allow' : said === 'needs approval' ? 'ask' : 'deny';
    await this.path(op, '/unheard-of/x', action);
  }

  async refuses(path: string): Promise<void> {
    await assert.rejects(this.workspace.writeFile(path, ''), (error: unknown) => error instanceof WorkspaceError, path);
  }

  /** Every name that some rule gives, and one of no rule. */
  get unnamed(): string {
    assert.ok(!this.named.includes('unheard-of'));
    return 'unheard-of';
  }
}

const names = (list: string): string[] => [...list.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
const sample = (pattern: string): string => pattern.replaceAll('*', 'x');
const LIST = '((?:`[^`]+`(?:, )?)+)';
const ACTION = '(is allowed|needs approval|is not permitted)';

/** Every sentence the instructions may hold, and what it has to mean. A sentence that matches none fails the test. */
const SENTENCES: [RegExp, (it: Listener, ...groups: string[]) => void | Promise<void>][] = [
  [/^The root is `\.`; use paths relative to it\.$/, (it) => it.possible('read', '.')],
  [/^A symbolic link counts as the place it leads to\.$/, async (it) => await it.path('read', 'link', 'allow')],
  [/^Symbolic links are refused\.$/, async (it) => await it.path('read', 'link', 'deny')],
  [/^Look before you change: glob and grep find the place, read_file shows it\.$/, (it) => { it.has('glob', 'grep', 'read_file'); it.possible('read', '.'); }],
  [/^Page long files with offset and limit\.$/, (it) => it.has('read_file')],
  [/^You may create and change files\.$/, async (it) => { it.has('write_file', 'edit_file'); await it.path('write', 'fresh/x.txt', 'allow'); }],
  [/^You may propose to create or change files; each change needs approval\.$/, async (it) => { it.has('write_file', 'edit_file'); await it.path('write', 'fresh/x.txt', 'ask'); }],
  [/^Read a file before you edit it\.$/, (it) => it.has('read_file', 'edit_file')],
  [/^The workspace is read-only: files cannot be created or changed\.$/, async (it) => { it.hasNot(...WRITE, ...COMMIT); await it.path('write', 'fresh/x.txt', 'deny').catch((error: unknown) => assert.ok(error)); }],
  [/^Files cannot be created or changed, except where it says so below\.$/, async (it) => { it.has('write_file'); await it.path('write', 'fresh/x.txt', 'deny'); }],
  [/^Put temporary files in `tmp\/` and clear them away when you are done\.$/, (it) => it.possible('write', 'tmp/x')],
  [/^The workspace is a git repository\.$/, (it) => it.has('git_status')],
  [/^File tools do not write in `\.git`\.$/, async (it) => await it.refuses('.git/x')],
  [/^Nothing outside the workspace can be read or written\.$/, async (it) => { await it.outside('read', 'is not permitted'); await it.outside('write', 'is not permitted'); }],
  [new RegExp(`^Outside the workspace, by absolute path: reading ${ACTION}, writing ${ACTION}\\.$`), async (it, read = '', write = '') => { await it.outside('read', read); await it.outside('write', write); }],
  [new RegExp(`^You may also read: ${LIST}\\.$`), async (it, list = '') => { for (const path of names(list)) await it.path('read', sample(path), 'allow'); }],
  [new RegExp(`^You may also read and write: ${LIST}\\.$`), async (it, list = '') => { for (const path of names(list)) { await it.path('read', sample(path), 'allow'); await it.path('write', sample(path), 'allow'); } }],
  [new RegExp(`^Off limits, also to commands: ${LIST}\\.$`), async (it, list = '') => { for (const path of names(list)) { await it.path('read', sample(path), 'deny'); await it.command(`cat ${sample(path)}`, 'deny'); } }],
  [/^Do not look for ways around this\.$/, () => {}],
  [new RegExp(`^(Reading|Writing) \`([^\`]+)\` ${ACTION}\\.$`), async (it, verb, pattern = '', said) => await it.path(verb === 'Reading' ? 'read' : 'write', sample(pattern), said === 'is allowed' ? 'allow' : said === 'needs approval' ? 'ask' : 'deny')],
  [/^There is no shell: use the file tools\.$/, (it) => { it.hasNot(...SHELL); it.has('read_file'); }],
  [/^Shell commands run without approval, as far as their paths are allowed\.$/, async (it) => await it.command(it.unnamed, 'allow')],
  [new RegExp(`^Shell commands need approval(?:, except those that begin with ${LIST})?\\.$`), async (it, list = '') => { await it.command(it.unnamed, 'ask'); for (const line of names(list)) await it.command(line, 'allow'); }],
  [new RegExp(`^The shell runs only(?: commands that begin with ${LIST})?,?(?: with approval those that begin with ${LIST})?\\.$`), async (it, free = '', asked = '') => {
    assert.ok(free || asked, 'it names nothing');
    await it.command(it.unnamed, 'deny');
    for (const line of names(free)) await it.command(line, 'allow');
    for (const line of names(asked)) await it.command(line, 'ask');
  }],
  [new RegExp(`^Never run: ${LIST}\\.$`), async (it, list = '') => { for (const line of names(list)) await it.command(line, 'deny'); }],
  [new RegExp(`^Needs approval: ${LIST}\\.$`), async (it, list = '') => { for (const line of names(list)) await it.command(line, 'ask'); }],
  [/^Every command in a line is judged, and the paths it names as well\.$/, (it) => it.has('shell')],
  [/^Write plain commands: what cannot be read with certainty is not run without a person\.$/, (it) => it.has('shell')],
  [/^Start servers and watchers with background: true; read and end them with their process id\.$/, (it) => it.has('shell', 'read_process_output', 'kill_process')],
  [/^The Python environment `\.venv` is active for every command\.$/, (it) => it.has('shell')],
  [/^The project uses `npm`: use it, not another package manager\.$/, async (it) => await it.command('npm', await it.command('npm', 'allow').then(() => 'allow', () => 'ask'))],
];

/** Sentences end with a full stop and a blank before a capital letter; names in backticks may hold both. */
function sentences(text: string): string[] {
  const [heading, ...lines] = text.trimEnd().split('\n');
  assert.equal(heading, '## Workspace');
  return lines.filter(Boolean).flatMap((line) => {
    assert.match(line, /^- /);
    return line.slice(2).split(/(?<=\.) (?=[A-Z])/);
  });
}

test('every sentence of the instructions is true of what is then decided and offered', async () => {
  const used = new Set<RegExp>();
  await withVariants(async (what, workspace) => {
    const text = workspace.instructions();
    const named = [...text.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
    const listener = new Listener(workspace, named, what !== 'no policy at all');
    for (const sentence of sentences(text)) {
      const found = SENTENCES.find(([pattern]) => pattern.test(sentence));
      assert.ok(found, `${what}: no test knows what this sentence promises: ${sentence}`);
      const [pattern, holds] = found;
      used.add(pattern);
      try {
        await holds(listener, ...(pattern.exec(sentence) ?? []).slice(1));
      } catch (error) {
        throw new Error(`${what}: ${sentence}: ${(error as Error).message}\n${text}`, { cause: error });
      }
    }
  });
  // A meaning that no variant needs proves nothing.
  assert.deepEqual(SENTENCES.map(([pattern]) => pattern).filter((pattern) => !used.has(pattern)), []);
});
