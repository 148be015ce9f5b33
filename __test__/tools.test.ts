// The shape of tools, what they say, and when they ask.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFsTools, createShellTool, MemoryWorkspace, WorkspaceError, type FsProvider, type Tool } from 'croft';
import { z } from 'zod';

const NAMES = ['read_file', 'list_dir', 'glob', 'grep', 'write_file', 'edit_file'];

function byName(tools: Tool[]): Record<string, Tool> {
  return Object.fromEntries(tools.map((tool) => [tool.name, tool]));
}

/** Six methods and nothing else, as somebody else's provider has. */
export function plainProvider(workspace: MemoryWorkspace): FsProvider {
  return {
    readFile: (path) => workspace.readFile(path),
    writeFile: (path, content, options) => workspace.writeFile(path, content, options),
    stat: (path) => workspace.stat(path),
    readdir: (path) => workspace.readdir(path),
    mkdir: (path) => workspace.mkdir(path),
    rm: (path, options) => workspace.rm(path, options),
  };
}

const FILES = {
  'src/a.ts': 'export const a = 1;\nexport const b = 2;\n',
  'src/deep/c.ts': 'const c = 3;\n',
  'README.md': '# Title\r\ntext\r\n',
  '.gitignore': 'dist/\n',
  'dist/out.js': 'export const a = 1;\n',
  'node_modules/x/index.js': 'export const a = 1;\n',
};

describe('file tools', () => {
  test('are six, and four when read-only', () => {
    assert.deepEqual(createFsTools(new MemoryWorkspace()).map(({ name }) => name).sort(), [...NAMES].sort());
    const reading = createFsTools(new MemoryWorkspace(), { readOnly: true });
    assert.deepEqual(reading.map(({ name }) => name).sort(), ['glob', 'grep', 'list_dir', 'read_file']);
    assert.ok(reading.every(({ readOnly, parallel }) => readOnly && parallel));
  });

  test('describe their input as JSON Schema', () => {
    for (const tool of createFsTools(new MemoryWorkspace())) {
      const schema = z.toJSONSchema(tool.inputSchema) as { type: string; properties: object };
      assert.equal(schema.type, 'object', tool.name);
      assert.ok(Object.keys(schema.properties).length > 0, tool.name);
      assert.equal(typeof tool.inputSchema['~standard'].validate, 'function');
    }
  });

  test('can be renamed', () => {
    const names = createFsTools(new MemoryWorkspace(), { names: { read_file: 'view' } }).map(({ name }) => name);
    assert.ok(names.includes('view') && !names.includes('read_file'));
  });

  test('ask for approval as told, with checked input', async () => {
    const needsApproval = { write_file: true, edit_file: ({ path }: { path: string }) => !path.startsWith('src/') };
    const tools = byName(createFsTools(new MemoryWorkspace(), { needsApproval }));
    assert.equal(await tools['read_file']?.needsApproval({ path: 'a' }), false);
    assert.equal(await tools['write_file']?.needsApproval({ path: 'a', content: '' }), true);
    assert.equal(await tools['edit_file']?.needsApproval({ path: 'src/a', old_string: 'a', new_string: 'b' }), false);
    assert.equal(await tools['edit_file']?.needsApproval({ path: 'a', old_string: 'a', new_string: 'b' }), true);
  });

  test('name the argument that is wrong', async () => {
    const tools = byName(createFsTools(new MemoryWorkspace()));
    await assert.rejects(async () => await tools['read_file']?.execute({ path: 5 }), /read_file: path/);
    await assert.rejects(async () => await tools['edit_file']?.execute({ path: 'f', new_string: '' }), /edit_file: old_string/);
  });

  for (const kind of ['workspace', 'provider'] as const) {
    const open = (): [MemoryWorkspace, Record<string, Tool>] => {
      const workspace = new MemoryWorkspace({ files: FILES });
      return [workspace, byName(createFsTools(kind === 'workspace' ? workspace : plainProvider(workspace)))];
    };
    const call = async (name: string, input: object): Promise<unknown> => await open()[1][name]?.execute(input);

    test(`answer in the documented text, ${kind}`, async () => {
      assert.equal(await call('read_file', { path: 'src/a.ts' }), '     1\texport const a = 1;\n     2\texport const b = 2;');
      assert.equal(await call('read_file', { path: 'src/a.ts', offset: null, limit: null }), '     1\texport const a = 1;\n     2\texport const b = 2;');
      assert.match(String(await call('read_file', { path: 'src/a.ts', limit: 1 })), /^ {5}1\texport const a = 1;\n\[line 1 of 2 shown; continue with offset 2\]$/);
      assert.equal(await call('list_dir', {}), '.gitignore\nREADME.md\ndist/\nnode_modules/\nsrc/');
      assert.equal(await call('list_dir', { path: 'src', recursive: true }), 'src/a.ts\nsrc/deep/\nsrc/deep/c.ts');
      assert.equal(await call('glob', { pattern: '**/*.ts' }), 'src/a.ts\nsrc/deep/c.ts');
      assert.equal(await call('glob', { pattern: '*.ts', path: 'src' }), 'src/a.ts');
      assert.equal(await call('grep', { pattern: 'a = 1' }), 'src/a.ts:1: export const a = 1;');
      assert.equal(await call('grep', { pattern: 'a = 1', include_ignored: true }), 'dist/out.js:1: export const a = 1;\nsrc/a.ts:1: export const a = 1;');
      assert.equal(await call('grep', { pattern: 'B = ', ignore_case: true, context: 1 }), 'src/a.ts-1- export const a = 1;\nsrc/a.ts:2: export const b = 2;');
      assert.equal(await call('grep', { pattern: 'const c', path: 'src/deep/c.ts' }), 'src/deep/c.ts:1: const c = 3;');
    });

    test(`write and edit, and say what they did, ${kind}`, async () => {
      const [workspace, tools] = open();
      assert.equal(await tools['write_file']?.execute({ path: 'new/x.txt', content: 'hi\n' }), 'Created "new/x.txt" (3 bytes).');
      assert.match(String(await tools['write_file']?.execute({ path: 'new/x.txt', content: 'ho\n' })), /^Wrote "new\/x.txt" \(3 bytes\)\./);
      assert.equal(await tools['edit_file']?.execute({ path: 'src/a.ts', old_string: 'b = 2', new_string: 'b = $&' }), 'Edited "src/a.ts": 1 replacement, the first in line 2.');
      assert.match(String(await tools['edit_file']?.execute({ path: 'src/a.ts', old_string: 'export', new_string: 'let', replace_all: true })), /2 replacements/);
      assert.equal(await workspace.readFile('src/a.ts'), 'let const a = 1;\nlet const b = $&;\n');
      await assert.rejects(async () => await tools['write_file']?.execute({ path: 'README.md', content: '', create_only: true }), { code: 'ALREADY_EXISTS' });
      await assert.rejects(async () => await tools['edit_file']?.execute({ path: 'README.md', old_string: 'absent', new_string: '' }), { code: 'EDIT_NO_MATCH' });
      await assert.rejects(async () => await tools['grep']?.execute({ pattern: '(' }), { code: 'INVALID_REGEX' });
      await assert.rejects(async () => await tools['glob']?.execute({ pattern: '../*' }), WorkspaceError);
    });
  }
});

describe('the shell tool', () => {
  const answering = (): MemoryWorkspace => new MemoryWorkspace({ exec: (command) => ({ stdout: `ran ${command}\n`, exitCode: 3 }) });

  test('asks by default, and not for what it refuses anyway', async () => {
    const shell = createShellTool(answering(), { deny: ['rm -rf'] });
    assert.equal(await shell.needsApproval({ command: 'ls' }), true);
    assert.equal(await shell.needsApproval({ command: 'rm -rf /' }), false);
    await assert.rejects(shell.execute({ command: 'rm -rf /' }), { name: 'PermissionDeniedError', code: 'POLICY_DENIED' });
    await assert.rejects(shell.execute({ command: 'echo a; rm  -rf /' }), { code: 'POLICY_DENIED' });
    assert.equal((await shell.execute({ command: 'rm file' })).exitCode, 3);
  });

  test('an allow list takes whole words and no operators', async () => {
    const workspace = answering();
    const shell = createShellTool(workspace, { needsApproval: false, allow: ['git status', /^npm (test|run lint)$/] });
    for (const command of ['git status', 'git status -s', 'npm test']) assert.equal((await shell.execute({ command })).stdout, `ran ${command}\n`);
    const refused = ['git stash', 'git statusx', 'git status; id', 'git status && id', 'git status | sh', 'git status `id`', 'git status $(id)', 'git status > f', 'git status\nid', 'npm test -- -x', ''];
    for (const command of refused) await assert.rejects(shell.execute({ command }), WorkspaceError, command);
    assert.equal(workspace.commands.length, 3);
  });

  test('passes time limit, cwd and env on, lowered to the maximum', async () => {
    const workspace = answering();
    const shell = createShellTool(workspace, { needsApproval: false, defaultTimeoutMs: 500, maxTimeoutMs: 1000, cwd: 'sub', env: { A: '1' }, name: 'run' });
    assert.equal(shell.name, 'run');
    await shell.execute({ command: 'one' });
    await shell.execute({ command: 'two', timeout_ms: 99_999, cwd: 'other' });
    assert.deepEqual(workspace.commands, [
      { command: 'one', cwd: 'sub', env: { A: '1' }, timeoutMs: 500 },
      { command: 'two', cwd: 'other', env: { A: '1' }, timeoutMs: 1000 },
    ]);
  });

  test('clips and cleans what the model reads', async () => {
    const stdout = `\x1b[31mred\x1b[0m\n10%\r20%\r100%\n${'x'.repeat(5000)}\nEND\n`;
    const shell = createShellTool(new MemoryWorkspace({ exec: () => ({ stdout, timedOut: true, exitCode: 124 }) }), { needsApproval: false, maxOutputChars: 1000 });
    const result = await shell.execute({ command: 'x' });
    assert.ok(result.stdout.length <= 1000 && result.stdout.startsWith('red\n100%\nx') && result.stdout.endsWith('END\n'));
    assert.equal(result.timedOut, true);
    assert.match(String(result.note), /timeout/);
  });
});
