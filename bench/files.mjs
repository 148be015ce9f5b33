// Reading, paging, editing, writing, stat and listing beside node:fs doing the same work.
//   node bench/files.mjs            CROFT_BENCH_DIR=/dev/shm measures on tmpfs
import { mkdirSync, mkdtempSync, promises as fs, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NodeWorkspace, createFsTools } from 'croft';
import { compare } from './measure.mjs';

const base = process.env.CROFT_BENCH_DIR ?? tmpdir();
const root = mkdtempSync(join(base, 'croft-bench-'));
const workspace = new NodeWorkspace({ root });
/** Leaves the flush to the kernel, as the reference without fsync does. */
const unflushed = new NodeWorkspace({ root, fsync: false });
const toolsOf = (ws) => Object.fromEntries(createFsTools(ws).map((tool) => [tool.name, tool]));
const tools = toolsOf(workspace);
const at = (name) => join(root, name);
let unique = 0;

const LINE = 'export const value = compute(alpha, beta, gamma); // line\n';
const text = (bytes) => LINE.repeat(Math.ceil(bytes / LINE.length)).slice(0, bytes);

console.log(`in ${base} (file system type 0x${statfsSync(base).type.toString(16)}), Node ${process.version}`);

async function jsPage(name, offset, limit) {
  const lines = (await fs.readFile(at(name), 'utf8')).split('\n');
  return lines.slice(offset - 1, offset - 1 + limit).map((line, i) => `${String(offset + i).padStart(6)}\t${line}`).join('\n');
}

async function jsReplace(name, content, sync) {
  const temp = at(`${name}.${unique++}.tmp`);
  const handle = await fs.open(temp, 'wx');
  await handle.writeFile(content);
  if (sync) await handle.sync();
  await handle.close();
  await fs.rename(temp, at(name));
}

async function jsEdit(name, from, to, sync) {
  const before = await fs.readFile(at(name), 'utf8');
  const first = before.indexOf(from);
  if (first < 0 || before.indexOf(from, first + 1) >= 0) throw new Error('not unique');
  await jsReplace(name, before.slice(0, first) + to + before.slice(first + from.length), sync);
}

async function page(title, name, offset, limit) {
  const input = { path: name, offset, limit };
  const wide = createFsTools(workspace, { maxOutputChars: 1 << 30, maxReadLines: 1 << 30 }).find((tool) => tool.name === 'read_file');
  await compare(title, {
    croft: () => wide.execute(input),
    'readFile+split+map': () => jsPage(name, offset, limit),
  });
}

async function edit(size, label) {
  const name = `edit-${label}.ts`;
  const marker = ['// MARK A', '// MARK B'];
  for (const sync of [false, true]) {
    const half = text(size / 2);
    writeFileSync(at(name), `${half}${marker[0]}\n${half}`);
    let now = 0;
    const next = () => [marker[now % 2], marker[++now % 2]];
    const { edit_file } = sync ? tools : toolsOf(unflushed);
    await compare(`edit_file ${label}${sync ? '' : ', fsync: false'}`, {
      croft: () => { const [from, to] = next(); return edit_file.execute({ path: name, old_string: from, new_string: to }); },
      [sync ? 'JS temp+fsync+rename' : 'JS temp+rename']: () => { const [from, to] = next(); return jsEdit(name, from, to, sync); },
    });
  }
}

async function write(size, label) {
  const content = text(size);
  const name = `write-${label}.ts`;
  writeFileSync(at(name), content);
  for (const sync of [false, true]) {
    const { write_file } = sync ? tools : toolsOf(unflushed);
    await compare(`write_file ${label}${sync ? '' : ', fsync: false'}`, {
      croft: () => write_file.execute({ path: name, content }),
      [sync ? 'JS temp+fsync+rename' : 'JS temp+rename']: () => jsReplace(name, content, sync),
    });
  }
}

try {
  writeFileSync(at('4k.ts'), text(4096));
  writeFileSync(at('1m.ts'), text(1 << 20));
  writeFileSync(at('9m.ts'), text(9 << 20));
  const lines = (9 << 20) / LINE.length;
  await compare('ws.readFile 4 KB', { croft: () => workspace.readFile('4k.ts'), 'fs.promises.readFile': () => fs.readFile(at('4k.ts'), 'utf8') });
  await compare('ws.stat', { croft: () => workspace.stat('4k.ts'), 'fs.promises.stat': () => fs.stat(at('4k.ts')) });
  await page('read_file 4 KB, all', '4k.ts', 1, 2000);
  await page('read_file 1 MB, first 2000', '1m.ts', 1, 2000);
  await page('read_file 1 MB, middle 2000', '1m.ts', 8000, 2000);
  await page('read_file 1 MB, all', '1m.ts', 1, 100_000);
  await page('read_file 9 MB, first 2000', '9m.ts', 1, 2000);
  await page('read_file 9 MB, middle 2000', '9m.ts', Math.floor(lines / 2), 2000);
  await page('read_file 9 MB, last 2000', '9m.ts', Math.floor(lines) - 2000, 2000);
  await page('read_file 9 MB, all', '9m.ts', 1, 1_000_000);
  await edit(100 * 1024, '100 KB');
  await edit(5 << 20, '5 MB');
  await write(4096, '4 KB');
  mkdirSync(at('list'));
  for (let i = 0; i < 500; i++) writeFileSync(at(`list/file-${i}.ts`), 'x');
  await compare('list_dir of 500', {
    croft: () => tools.list_dir.execute({ path: 'list' }),
    'readdir + stat of each': async () => await Promise.all((await fs.readdir(at('list'))).map((name) => fs.stat(at(`list/${name}`)))),
    'readdir withFileTypes': () => fs.readdir(at('list'), { withFileTypes: true }),
  });
  const left = readdirSync(root).filter((name) => name.includes('tmp'));
  if (left.length > 0) throw new Error(`left over: ${left}`);
} finally {
  await workspace.close();
  await unflushed.close();
  rmSync(root, { recursive: true, force: true });
}
