// The observed examples about files, the shell and background processes (13 to 30 and 32; 1 to 12 and 31 are tests of
// the policy). The meaning is kept; where croft answers otherwise on purpose, the test's comment says how and why.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createFsTools, createProcessTools, createShellTool, NodeWorkspace, type Tool } from 'croft';

let root: string;
let workspace: NodeWorkspace;
let tools: Record<string, Tool>;

const byName = (list: Tool[]): Record<string, Tool> => Object.fromEntries(list.map((tool) => [tool.name, tool]));
const use = async (name: string, input: unknown): Promise<any> => await tools[name]?.execute(input);

async function fails(name: string, input: unknown, code: string, words: RegExp): Promise<void> {
  await assert.rejects(use(name, input), (error: any) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  });
}

/** Reads on until `enough`, with the output of all reads. */
async function read(id: string, enough: (output: string, status: string) => boolean): Promise<any> {
  for (let output = ''; ; ) {
    const piece = await use('read_process_output', { process_id: id, wait_ms: 5_000 });
    output += piece.output;
    if (enough(output, piece.status)) return { ...piece, output };
  }
}

before(() => {
  root = mkdtempSync(join(tmpdir(), 'croft-observed-'));
  mkdirSync(join(root, 'src'));
  writeFileSync(join(root, 'a.txt'), 'one\ntwo\nthree\nfour\nfive\n');
  writeFileSync(join(root, 'empty.txt'), '');
  writeFileSync(join(root, 'twice.txt'), 'x = 1\nx = 1\n');
  writeFileSync(join(root, 'crlf.txt'), 'alpha\r\nbeta\r\ngamma\r\n');
  writeFileSync(join(root, 'bad.txt'), Buffer.from([0x61, 0x0a, 0xff, 0x62]));
  writeFileSync(join(root, 'src/b.py'), 'two = 2\n');
  symlinkSync('src', join(root, 'link_in'));
  workspace = new NodeWorkspace({ root });
  const shell = createShellTool(workspace, { needsApproval: false, background: true });
  tools = byName([...createFsTools(workspace, { maxOutputChars: 2_000 }), shell, ...createProcessTools(workspace)]);
});

after(async () => {
  await workspace.close();
  rmSync(root, { recursive: true });
});

describe('observed examples about files', () => {
  test('13 a page of some lines says how many there are and how to go on', async () => {
    const page: string = await use('read_file', { path: 'a.txt', offset: 2, limit: 2 });
    assert.match(page, /^ {5}2\ttwo\n {5}3\tthree\n\[.*2.*3.*of 5.*offset.*4.*\]$/s);
  });

  test('14 a page that cannot be is refused with the reason; an empty file says so', async () => {
    await fails('read_file', { path: 'a.txt', offset: 9 }, 'OFFSET_PAST_END', /has 5 lines/);
    await fails('read_file', { path: 'a.txt', offset: 0 }, 'INVALID_ARGUMENT', /offset/);
    // There is no `end` that could lie before the start: a page has a length.
    await fails('read_file', { path: 'a.txt', limit: 0 }, 'INVALID_ARGUMENT', /limit/);
    assert.match(await use('read_file', { path: 'empty.txt' }), /empty/);
    await fails('read_file', { path: 'src' }, 'IS_DIRECTORY', /src/);
  });

  test('15 a page cut at its characters ends on a whole line and says so', async () => {
    // Observed: cut anywhere. Here between lines; inside only where one line alone is too long.
    writeFileSync(join(root, 'long.txt'), 'a line of some length\n'.repeat(100));
    const narrow = byName(createFsTools(workspace, { maxOutputChars: 200 }))['read_file'];
    assert.match(String(await narrow?.execute({ path: 'long.txt' })), /^( +\d+\ta line of some length\n)+\[.*of 100.*offset.*\]$/);
    rmSync(join(root, 'long.txt'));
  });

  test('16 a write makes parents, tells new from replaced, and keeps to create_only', async () => {
    assert.match(await use('write_file', { path: 'w/x/new.txt', content: '123456' }), /w\/x\/new\.txt/);
    assert.match(await use('write_file', { path: 'w/x/new.txt', content: 'again' }), /w\/x\/new\.txt/);
    // Observed: a result with ok = false. Here every failure is an error.
    await fails('write_file', { path: 'w/x/new.txt', content: '', create_only: true }, 'ALREADY_EXISTS', /exists/);
    await fails('write_file', { path: 'src', content: '' }, 'IS_DIRECTORY', /src/);
    await fails('write_file', { path: '.', content: '' }, 'IS_DIRECTORY', /\./);
    assert.equal(readFileSync(join(root, 'w/x/new.txt'), 'utf8'), 'again');
  });

  test('17 a write below a file is refused in words of the workspace', async () => {
    await fails('write_file', { path: 'a.txt/b', content: '' }, 'NOT_DIRECTORY', /a\.txt/);
  });

  test('18 an edit must fit exactly once, and says why it does not', async () => {
    const edit = (old_string: string, new_string: string, more = {}) => ({ path: 'twice.txt', old_string, new_string, ...more });
    await fails('edit_file', edit('x = 1', 'x = 2'), 'EDIT_AMBIGUOUS', /2 times.*lines 1, 2.*replace_all/s);
    await fails('edit_file', edit('y = 1', 'y = 2'), 'EDIT_NO_MATCH', /not found|does not occur/);
    await fails('edit_file', edit('', 'x'), 'INVALID_ARGUMENT', /empty/);
    assert.match(await use('edit_file', edit('x = 1\nx', 'x = 1\nx')), /no change|unchanged|same/i);
    assert.match(await use('edit_file', edit('x = 1', 'x = 2', { replace_all: true })), /2/);
    assert.equal(readFileSync(join(root, 'twice.txt'), 'utf8'), 'x = 2\nx = 2\n');
  });

  test('19 an LF edit of a CRLF region takes its endings', async () => {
    await use('edit_file', { path: 'crlf.txt', old_string: 'alpha\nbeta', new_string: 'A\nB' });
    assert.equal(readFileSync(join(root, 'crlf.txt'), 'utf8'), 'A\r\nB\r\ngamma\r\n');
  });

  test('20 a file that is not UTF-8 is not edited, and stays as it is', async () => {
    await fails('edit_file', { path: 'bad.txt', old_string: 'a', new_string: 'b' }, 'UNSUPPORTED_ENCODING', /UTF-8/);
    assert.deepEqual([...readFileSync(join(root, 'bad.txt'))], [0x61, 0x0a, 0xff, 0x62]);
  });

  test('21 a listing that was cut says so', async () => {
    const cut = byName(createFsTools(workspace, { maxResults: 3 }))['list_dir'];
    const listing = String(await cut?.execute({}));
    assert.equal(listing.split('\n').length, 4, listing);
    assert.match(listing, /\n\[.*3.*\]$/);
  });

  test('22 a glob does not climb; braces are known', async () => {
    await fails('glob', { pattern: '../*' }, 'INVALID_GLOB', /\.\./);
    // Observed: braces matched nothing.
    assert.match(await use('glob', { pattern: '*.{txt,py}' }), /^a\.txt\n/);
  });

  test('23 a search shows line numbers, goes through no link, and explains a bad pattern', async () => {
    // Observed: a hit under `link_in` came twice.
    assert.equal(await use('grep', { pattern: 'two' }), 'a.txt:2: two\nsrc/b.py:1: two = 2');
    await fails('grep', { pattern: '(' }, 'INVALID_REGEX', /Unterminated group/);
    assert.match(await use('grep', { pattern: 'qqqq' }), /no match/i);
  });

  test('32 the name of the workspace itself is not a path in it', async () => {
    await fails('list_dir', { path: 'croft-observed' }, 'NOT_FOUND', /croft-observed/);
  });
});

describe('observed examples about the shell', () => {
  test('24 streams and the exit code come apart', async () => {
    const result = await use('shell', { command: 'echo hi; echo err >&2; exit 3' });
    assert.deepEqual([result.exitCode, result.stdout, result.stderr], [3, 'hi\n', 'err\n']);
  });

  test('25 no output, a timeout, and an end by a signal are told', async () => {
    assert.equal((await use('shell', { command: 'true' })).exitCode, 0);
    // Observed: what had been written was lost.
    const late = await use('shell', { command: 'echo partial; sleep 50', timeout_ms: 300 });
    assert.deepEqual([late.timedOut, late.stdout], [true, 'partial\n']);
    // Observed: -9. Here as a shell counts.
    assert.equal((await use('shell', { command: 'kill -9 $$' })).exitCode, 137);
  });

  test('26 what a command leaves running is ended, and a note says so', async () => {
    const result = await use('shell', { command: 'sleep 300 & echo started' });
    assert.deepEqual([result.exitCode, result.stdout], [0, 'started\n']);
    assert.match(result.note, /1 process.*background/s);
  });

  test('27 long output keeps its head and its tail', async () => {
    const narrow = createShellTool(workspace, { needsApproval: false, maxOutputChars: 200 });
    const { stdout } = (await narrow.execute({ command: 'seq 1 3000' })) as { stdout: string };
    assert.match(stdout, /^1\n2\n/);
    assert.match(stdout, /\n3000\n?$/);
  });

  test('28 no secret of the host is in the environment', async () => {
    const { stdout } = await use('shell', { command: 'env' });
    const names = String(stdout).trim().split('\n').map((line) => line.split('=')[0] ?? '');
    for (const name of ['PATH', 'HOME', 'PWD']) assert.ok(names.includes(name), name);
    const given = /^(PATH|HOME|TEMP|TMP|TMPDIR|LANG|LC_\w+|TERM|PWD|OLDPWD|SHLVL|_|PAGER|GIT_PAGER|GIT_TERMINAL_PROMPT)$/;
    assert.deepEqual(names.filter((name) => !given.test(name)), []);
  });

  test('29 a background process is read while it runs, at its end, and after it', async () => {
    assert.equal(spawnSync('mkfifo', [join(root, 'gate')]).status, 0);
    const { id } = await workspace.spawn('echo line1; read x < gate; echo line2; echo line3; exit 5');
    const running = await read(id, (output) => output.includes('line1'));
    assert.deepEqual([running.status, running.output], ['running', 'line1\n']);
    writeFileSync(join(root, 'gate'), 'go\n');
    const ended = await read(id, (_, status) => status === 'exited');
    assert.deepEqual([ended.status, ended.exitCode, ended.output], ['exited', 5, 'line2\nline3\n']);
    const after = await use('read_process_output', { process_id: id });
    assert.deepEqual([after.status, after.exitCode, after.output], ['exited', 5, '']);
  });

  test('30 a killed process gives its tail; an unknown id lists the known ones', async () => {
    const { id } = await workspace.spawn('echo hi; sleep 300');
    await use('read_process_output', { process_id: id, wait_ms: 0 });
    const killed = await use('kill_process', { process_id: id });
    // Observed: exit code -9. Here 128 + the signal that ended it.
    assert.equal(killed.status, 'killed');
    assert.ok([137, 143].includes(killed.exitCode), String(killed.exitCode));
    await fails('read_process_output', { process_id: 'bg-zzz' }, 'PROCESS_NOT_FOUND', new RegExp(id));
  });
});
