// What the policy denies, asks and shows, on disk and in memory, through the package's own name.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  createApprovals,
  createFsTools,
  createShellTool,
  createWorkspaceTools,
  MemoryWorkspace,
  NodeWorkspace,
  PermissionDeniedError,
  type NodeWorkspaceOptions,
  type PolicyOptions,
  type Tool,
  type Workspace,
  WorkspaceError,
} from 'croft';

const FILES: Record<string, string> = {
  'a.txt': 'needle\n',
  '.env': 'needle SECRET\n',
  'sub/.env.local': 'needle SECRET\n',
  'secrets/key': 'needle SECRET\n',
  'build/out/z': 'needle SECRET\n',
  'build/log': 'needle\n',
};

interface Place {
  folder: string;
  open(options?: Partial<NodeWorkspaceOptions>): NodeWorkspace;
}

async function onDisk(run: (place: Place) => Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'croft-policy-')));
  const root = join(folder, 'ws');
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  const opened: NodeWorkspace[] = [];
  const open = (options: Partial<NodeWorkspaceOptions> = {}): NodeWorkspace => {
    const workspace = new NodeWorkspace({ root, ...options });
    opened.push(workspace);
    return workspace;
  };
  try {
    await run({ folder, open });
  } finally {
    for (const workspace of opened) await workspace.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function named(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((tool) => tool.name === name);
  assert.ok(tool, `there is no tool ${name}`);
  return tool;
}

const denied = (error: unknown): boolean => error instanceof PermissionDeniedError && error.code === 'POLICY_DENIED';

const DENIED: PolicyOptions = { deniedPaths: ['.env*', 'secrets', 'build/out'] };

async function assertInvisible(workspace: Workspace): Promise<void> {
  const tools = createFsTools(workspace);
  const all = await workspace.glob('**', { gitignore: false });
  assert.deepEqual(all.paths, ['a.txt', 'build/log']);
  const found = await workspace.grep('needle');
  assert.deepEqual(found.matches.map(({ path }) => path), ['a.txt', 'build/log']);
  const listed = String(await named(tools, 'list_dir').execute({ path: '.', recursive: true }));
  assert.doesNotMatch(listed, /env|secrets|out/);
  assert.deepEqual((await workspace.readdir('.')).map(({ name }) => name), ['a.txt', 'build', 'sub']);
  assert.deepEqual((await workspace.readdir('build')).map(({ name }) => name), ['log']);
  for (const path of ['.env', 'sub/.env.local', 'secrets/key', 'secrets', 'build/out/z', 'sub/../.env', 'new/.env']) {
    await assert.rejects(workspace.readFile(path), denied, path);
    await assert.rejects(workspace.writeFile(path, 'x'), denied, path);
    await assert.rejects(workspace.editFile(path, { oldString: 'needle', newString: 'x' }), denied, path);
    await assert.rejects(workspace.stat(path), denied, path);
    await assert.rejects(workspace.rename('a.txt', path), denied, path);
    await assert.rejects(workspace.rename(path, 'b.txt'), denied, path);
    await assert.rejects(workspace.rm(path, { recursive: true }), denied, path);
    assert.equal(workspace.decidePath(path, 'read').action, 'deny', path);
  }
  for (const path of ['secrets', 'build/out']) {
    await assert.rejects(workspace.glob('**', { path }), denied, path);
    await assert.rejects(workspace.grep('needle', { path }), denied, path);
    await assert.rejects(workspace.readdir(path), denied, path);
    await assert.rejects(workspace.mkdir(`${path}/x`), denied, path);
  }
  // A folder goes only with everything in it.
  await assert.rejects(workspace.rename('build', 'moved'), denied);
  await assert.rejects(workspace.rm('build', { recursive: true }), denied);
  assert.equal(await workspace.readFile('build/log'), 'needle\n');
  // A name that is nearly a denied one gives no hint.
  await assert.rejects(workspace.readFile('.enw'), (error: unknown) => error instanceof WorkspaceError && error.code === 'NOT_FOUND' && !error.message.includes('.env'));
}

test('a denied path is invisible on disk and in memory', async () => {
  await onDisk(async ({ open }) => assertInvisible(open(DENIED)));
  await assertInvisible(new MemoryWorkspace({ files: FILES, ...DENIED }));
});

test('a link to a denied path, and a link with a denied name, are as denied as the path', async () => {
  await onDisk(async ({ folder, open }) => {
    const workspace = open(DENIED);
    const link = (target: string, name: string): void => symlinkSync(target, join(folder, 'ws', name));
    link('.env', 'innocent');
    link('secrets', 'dir');
    link('build', 'built');
    link('a.txt', '.env.link');
    link(join(folder, 'ws/secrets'), 'absolute');
    link('dir', 'twice');
    link('a.txt', 'fine');
    assert.deepEqual((await workspace.readdir('.')).map(({ name }) => name), ['a.txt', 'build', 'built', 'fine', 'sub']);
    for (const path of ['innocent', 'dir', 'dir/key', '.env.link', 'absolute/key', 'twice/key', 'built/out/z']) {
      await assert.rejects(workspace.readFile(path), denied, path);
      await assert.rejects(workspace.readPage(path), denied, path);
      await assert.rejects(workspace.readFileBytes(path), denied, path);
      await assert.rejects(workspace.stat(path), denied, path);
      await assert.rejects(workspace.writeFile(path, 'x'), denied, path);
      assert.equal(workspace.decidePath(path, 'read').action, 'deny', path);
    }
    assert.equal(await workspace.readFile('fine'), 'needle\n');
    assert.deepEqual((await workspace.glob('**', { path: 'built' })).paths, ['built/log']);
    assert.deepEqual((await workspace.readdir('built')).map(({ name }) => name), ['log']);
    await assert.rejects(workspace.grep('needle', { path: 'dir' }), denied);
    const listed = String(await named(createFsTools(workspace), 'list_dir').execute({ path: '.', recursive: true }));
    assert.doesNotMatch(listed, /innocent|dir|env|absolute|twice|secrets/);
    assert.equal(readFileSync(join(folder, 'ws/.env'), 'utf8'), FILES['.env']);
  });
});

test('a command that names a link is judged by where it leads, and starts nothing', async () => {
  await onDisk(async ({ folder, open }) => {
    const link = (target: string, name: string): void => symlinkSync(target, join(folder, 'ws', name));
    link('.env', 'innocent');
    link('secrets', 'dir');
    link('dir', 'twice');
    link(join(folder, 'ws/build'), 'absolute');
    link('.env.not-yet', 'dangling');
    link('../other', 'out');
    link('loop', 'loop');
    mkdirSync(join(folder, 'other'));
    const trusted = open({ mode: 'trusted', ...DENIED });
    for (const command of ['cat innocent', 'cat dir/key', 'cat twice/key', 'ls dir', 'cat dir/*', 'cd twice && cat key', 'cat absolute/out/z', 'echo x > dangling', 'cat < innocent', ['cat', 'innocent']]) {
      assert.equal(trusted.decideCommand(command).action, 'deny', String(command));
      await assert.rejects(trusted.exec(command), denied, String(command));
    }
    await assert.rejects(trusted.exec('ls', { cwd: 'dir' }), denied);
    assert.equal(trusted.decideCommand('ls', { cwd: 'dir' }).action, 'deny');
    for (const command of ['cat absolute/log', 'cat a.txt', 'cat loop', 'ls out']) assert.equal(trusted.decideCommand(command).action, 'allow', command);
    assert.equal((await trusted.exec('cat absolute/log')).stdout, 'needle\n');
    assert.equal(open({ mode: 'coding' }).decideCommand('ls out').action, 'ask');
    assert.equal(open({ mode: 'coding', commandRules: [{ pattern: 'ls', action: 'allow' }] }).decideCommand('ls out').action, 'ask');
    assert.equal(open({ mode: 'coding', commandRules: [{ pattern: 'ls', action: 'allow' }] }).decideCommand('ls absolute').action, 'allow');
    assert.equal(open({ mode: 'trusted' }).decideCommand('touch out/x').action, 'ask');
    assert.equal(existsSync(join(folder, 'ws/.env.not-yet')), false);
  });
});

test('a grant outside is a root of its own; nothing beside it opens', async () => {
  await onDisk(async ({ folder, open }) => {
    for (const name of ['granted/sub', 'writable', 'other']) mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, 'granted/f'), 'needle granted\n');
    writeFileSync(join(folder, 'other/f'), 'needle other\n');
    writeFileSync(join(folder, 'one.txt'), 'one\n');
    writeFileSync(join(folder, 'two.txt'), 'two\n');
    symlinkSync(join(folder, 'other'), join(folder, 'granted/escape'));
    const at = (name: string): string => join(folder, name);
    const workspace = open({ readable: [at('granted'), at('one.txt')], writable: [at('writable')] });
    assert.equal(await workspace.readFile(at('granted/f')), 'needle granted\n');
    assert.equal(await workspace.readFile(at('ws/a.txt')), 'needle\n');
    assert.equal(await workspace.readFile(at('one.txt')), 'one\n');
    assert.deepEqual((await workspace.grep('needle', { path: at('granted') })).matches.map(({ path }) => path), [at('granted/f')]);
    await workspace.writeFile(at('writable/new'), 'x');
    assert.equal(readFileSync(at('writable/new'), 'utf8'), 'x');
    for (const path of ['granted/new', 'granted/f', 'one.txt']) await assert.rejects(workspace.writeFile(at(path), 'x'), denied, path);
    for (const path of ['other/f', 'two.txt', 'granted/../other/f', 'granted/escape/f']) {
      await assert.rejects(workspace.readFile(at(path)), WorkspaceError, path);
    }
    assert.equal(workspace.decidePath(at('granted/f'), 'read').action, 'allow');
    assert.equal(workspace.decidePath(at('granted/f'), 'write').action, 'deny');
  });
});

test('more roots are reached by absolute path and must exist', async () => {
  await onDisk(async ({ folder, open }) => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data/f'), 'data\n');
    const workspace = open({ roots: [join(folder, 'data')] });
    assert.equal(await workspace.readFile(join(folder, 'data/f')), 'data\n');
    await workspace.writeFile(join(folder, 'data/g'), 'g');
    assert.equal(await workspace.readFile(join(folder, 'ws/a.txt')), 'needle\n');
    await assert.rejects(workspace.readFile('/etc/hostname'), (error: unknown) => error instanceof WorkspaceError);
    assert.throws(() => open({ roots: [join(folder, 'missing')] }), (error: unknown) => error instanceof WorkspaceError && error.code === 'NOT_FOUND');
  });
});

test('in trusted mode the outside can be read, and a denial holds there too', async () => {
  await onDisk(async ({ folder, open }) => {
    mkdirSync(join(folder, 'other/secrets'), { recursive: true });
    writeFileSync(join(folder, 'other/f'), 'other\n');
    writeFileSync(join(folder, 'other/secrets/k'), 'SECRET\n');
    const workspace = open({ mode: 'trusted', deniedPaths: ['secrets'] });
    assert.equal(await workspace.readFile(join(folder, 'other/f')), 'other\n');
    await assert.rejects(workspace.readFile(join(folder, 'other/secrets/k')), denied);
    assert.deepEqual((await workspace.readdir(join(folder, 'other'))).map(({ name }) => name), ['f']);
    const coding = open({ mode: 'coding' });
    await assert.rejects(coding.writeFile(join(folder, 'other/x'), 'x'), denied);
    assert.equal(coding.decidePath(join(folder, 'other/f'), 'read').action, 'ask');
    const readFile = named(createWorkspaceTools(coding), 'read_file');
    assert.equal(await readFile.needsApproval({ path: join(folder, 'other/f') }), true);
    assert.equal(await readFile.needsApproval({ path: 'a.txt' }), false);
  });
});

test('the tool set is what the mode allows, and the instructions say the same', async () => {
  const reading = ['read_file', 'list_dir', 'glob', 'grep'];
  const writing = ['write_file', 'edit_file'];
  for (const [mode, tools, sentence] of [
    ['readonly', reading, 'There is no shell'],
    ['coding', [...reading, ...writing, 'shell'], 'Shell commands need approval'],
    ['trusted', [...reading, ...writing, 'shell'], 'Shell commands run without approval'],
  ] as const) {
    const workspace = new MemoryWorkspace({ files: { 'package-lock.json': '{}' }, mode });
    const names = createWorkspaceTools(workspace).map(({ name }) => name);
    for (const name of tools) assert.ok(names.includes(name), `${mode} has ${name}`);
    for (const name of [...writing, 'shell']) assert.equal(names.includes(name), (tools as readonly string[]).includes(name), `${mode}: ${name}`);
    const text = workspace.instructions();
    assert.match(text, /^## Workspace\n/);
    assert.ok(text.includes(sentence), text);
    assert.equal(text.includes('`npm`'), mode !== 'readonly', text);
  }
});

test('a denied command is refused whoever calls, and starts nothing', async () => {
  await onDisk(async ({ folder, open }) => {
    const workspace = open({ mode: 'trusted', commandRules: [{ pattern: 'touch', action: 'deny' }, { pattern: '*', action: 'allow' }], deniedPaths: ['.env*'] });
    const mark = join(folder, 'ws/MARK');
    for (const command of ['touch MARK', 'env A=b touch MARK', "sh -c 'touch MARK'", 'echo $(touch MARK)', ['touch', 'MARK'], 'cat .env', 'cat .e*', 'cat < .env']) {
      await assert.rejects(workspace.exec(command), denied, String(command));
      await assert.rejects(workspace.spawn(command), denied, String(command));
      assert.equal(workspace.decideCommand(command).action, 'deny', String(command));
    }
    assert.equal(existsSync(mark), false);
    assert.equal((await workspace.exec("echo 'touch MARK'")).stdout, 'touch MARK\n');
    assert.equal(existsSync(mark), false);
    const readonly = open({ mode: 'readonly' });
    await assert.rejects(readonly.exec('ls'), denied);
    await assert.rejects(readonly.writeFile('x', 'x'), denied);
  });
});

test('without a policy commands run and the shell tool asks', async () => {
  await onDisk(async ({ open }) => {
    const workspace = open();
    assert.equal((await workspace.exec('cat /dev/null; echo $((1+1))')).stdout, '2\n');
    assert.deepEqual(workspace.decideCommand('anything at all').action, 'allow');
    assert.equal(await named(createWorkspaceTools(workspace), 'shell').needsApproval({ command: 'ls' }), true);
  });
});

test('paths and folders are data, never shell text', async () => {
  await onDisk(async ({ folder, open }) => {
    const workspace = open({ mode: 'trusted' });
    for (const name of ['a$(touch MARK)b', '`touch MARK`', "a'b", 'a"b', '-rf', 'x; touch MARK']) {
      await workspace.writeFile(name, 'x');
      assert.equal(await workspace.readFile(name), 'x');
      const folder = `folder ${name}`;
      await workspace.mkdir(folder);
      assert.equal((await workspace.exec('pwd', { cwd: folder })).exitCode, 0, name);
    }
    assert.equal(existsSync(join(folder, 'ws/MARK')), false);
  });
});

test('bad policy options are refused by name', () => {
  for (const [options, message] of [
    [{ mode: 'yolo' }, /mode/],
    [{ mode: 'readonly', commandRules: [{ pattern: 'ls', action: 'allow' }] }, /no shell/],
    [{ mode: 'coding', policy: {} }, /policy replaces mode/],
    [{ deniedPaths: [''] }, /deniedPaths.*empty/],
    [{ deniedPaths: ['../x'] }, /deniedPaths/],
    [{ commandRules: [{ pattern: ' ', action: 'deny' }] }, /commandRules.*empty/],
    [{ commandRules: [{ pattern: 'git p*', action: 'deny' }] }, /commandRules/],
    [{ pathRules: [{ pattern: 'x', action: 'no' }] }, /pathRules/],
  ] as const) {
    const make = (): unknown => new MemoryWorkspace(options as never);
    assert.throws(make, (error: unknown) => error instanceof WorkspaceError && error.code === 'INVALID_ARGUMENT' && message.test(error.message), JSON.stringify(options));
  }
});

test('approvals are remembered, listed, revocable, and no wider than what was shown', async () => {
  const workspace = new MemoryWorkspace({ files: FILES, mode: 'coding', commandRules: [{ pattern: 'git push', action: 'deny' }], exec: () => ({ stdout: 'ran' }) });
  const approvals = createApprovals();
  const tools = createWorkspaceTools(workspace, { approvals });
  const shell = named(tools, 'shell');
  const asks = async (command: string, cwd?: string): Promise<boolean> => await shell.needsApproval({ command, cwd });
  assert.equal(await asks('npm test'), true);
  const grant = approvals.allow({ tool: 'shell', command: 'npm test' });
  for (const command of ['npm test', 'npm test -- --watch', 'npm test && npm test', "sh -c 'npm test'", 'npm test > out.txt']) assert.equal(await asks(command), false, command);
  for (const command of ['npm', 'npm testx', 'npm run x', 'npm test; rm -rf x', 'npm test $(rm x)', 'npm test | tee x', 'npm test && cat /etc/passwd', 'PATH=. npm test', './npm test', 'npm $x', 'npm test; )']) {
    assert.equal(await asks(command), true, command);
  }
  approvals.allow({ tool: 'shell', command: 'git' });
  assert.equal(await asks('git status'), false);
  assert.equal(await asks('git -c alias.x=y x'), true);
  assert.equal(await asks('git push'), false, 'a denied command is not offered');
  await assert.rejects(shell.execute({ command: 'git push' }), denied);
  const exact = approvals.allow({ tool: 'shell', command: 'make; ls', exact: true });
  assert.equal(await asks('make; ls'), false);
  assert.equal(await asks('make'), true);
  assert.deepEqual(approvals.list().map(({ command }) => command), ['npm test', 'git', 'make; ls']);
  assert.equal(approvals.revoke(grant.id), true);
  assert.equal(approvals.revoke(grant.id), false);
  assert.equal(await asks('npm test'), true);
  approvals.clear();
  assert.equal(await asks('make; ls'), true);
  assert.deepEqual(approvals.list(), []);
  assert.equal(exact.exact, true);
  for (const request of [{ tool: 'shell' }, { tool: 'shell', command: ' ' }, { tool: 'shell', command: 'x', path: 'y' }, { tool: 'shell', command: 'npm *x' }, { tool: 'write_file', path: '' }]) {
    assert.throws(() => approvals.allow(request), WorkspaceError, JSON.stringify(request));
  }
});

test('an approval of a path covers that path, by its name and by where links lead', async () => {
  await onDisk(async ({ folder, open }) => {
    const workspace = open({ policy: { writeInside: 'ask' } });
    const approvals = createApprovals();
    const write = named(createWorkspaceTools(workspace, { approvals }), 'write_file');
    const asks = async (path: string): Promise<boolean> => await write.needsApproval({ path, content: 'x' });
    symlinkSync('../a.txt', join(folder, 'ws/build/link'));
    assert.equal(await asks('build/log'), true);
    approvals.allow({ tool: 'write_file', path: 'build/log' });
    assert.equal(await asks('build/log'), false);
    assert.equal(await asks('./build/../build/log'), false);
    assert.equal(await asks('build/new'), true);
    approvals.allow({ tool: 'write_file', path: 'build/' });
    assert.equal(await asks('build/new'), false);
    assert.equal(await asks('build/link'), true, 'the link leads out of what was allowed');
    assert.equal(await asks('buildx'), true);
    assert.equal(await named(createWorkspaceTools(workspace, { approvals }), 'edit_file').needsApproval({ path: 'build/log', old_string: 'a', new_string: 'b' }), true);
  });
});

test('the deny list of the shell tool sees every command of a line', async () => {
  const workspace = new MemoryWorkspace({ exec: () => ({ stdout: 'ran' }) });
  const shell = createShellTool(workspace, { deny: ['rm', 'git push'], needsApproval: false });
  for (const command of ['rm x', '/bin/rm x', 'sudo rm x', 'A=b rm x', '(rm x)', 'echo $(rm x)', "sh -c 'rm x'", "r''m x", 'ls | xargs rm', 'if ls; then rm x; fi', 'git push', 'git $x', 'rm x; )']) {
    await assert.rejects(shell.execute({ command }), denied, command);
  }
  for (const command of ['echo rm', "echo 'rm x'", 'git status', 'rmdir x']) await shell.execute({ command });
  assert.equal(workspace.commands.length, 4);
});
