// MemoryWorkspace beside memfs and a plain Map: 10,000 files of 1 KB.
//   node --expose-gc bench/memory.mjs
import { MemoryWorkspace } from 'croft';
import { memfs } from 'memfs';
import { compare } from './measure.mjs';

const FILES = 10_000;
const content = 'x'.repeat(63).concat('\n').repeat(16);
const path = (i) => `dir${Math.floor((i % FILES) / 100)}/file${i % FILES}.ts`;

// First, while nothing else has grown the process.
await resident();

const workspace = new MemoryWorkspace();
const { fs: mem } = memfs();
const map = new Map();
for (let i = 0; i < 100; i++) mem.mkdirSync(`/dir${i}`, { recursive: true });

const perFile = [];
for (let i = 0; i < FILES; i++) perFile.push(workspace.writeFile(path(i), content));
await Promise.all(perFile);
for (let i = 0; i < FILES; i++) {
  mem.writeFileSync(`/${path(i)}`, content);
  map.set(path(i), content);
}

let i = 0;
await compare('write 1 KB', {
  croft: () => workspace.writeFile(path(i++), content),
  'memfs promises': () => mem.promises.writeFile(`/${path(i++)}`, content),
  Map: async () => map.set(path(i++), content),
});
await compare('read 1 KB', {
  croft: () => workspace.readFile(path(i++)),
  'memfs promises': () => mem.promises.readFile(`/${path(i++)}`, 'utf8'),
  Map: async () => map.get(path(i++)),
});
await compare('stat', {
  croft: () => workspace.stat(path(i++)),
  'memfs promises': () => mem.promises.stat(`/${path(i++)}`),
  Map: async () => map.has(path(i++)),
});
await compare('grep 10,000 files, rare pattern', {
  croft: () => workspace.grep('needle[0-9]'),
  'Map, split + RegExp': async () => {
    const hits = [];
    for (const [name, text] of map) text.split('\n').forEach((line, n) => /needle[0-9]/.test(line) && hits.push(`${name}:${n}`));
    return hits;
  },
}, { rounds: 9 });


async function resident() {
  const files = 50_000;
  const held = new MemoryWorkspace();
  for (let n = 0; n < 1000; n++) await held.writeFile(`warm/${n}`, content);
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  for (let n = 0; n < files; n++) await held.writeFile(`dir${Math.floor(n / 100)}/file${n}.ts`, content);
  globalThis.gc?.();
  console.log(`resident memory of a 1 KB file: ${((process.memoryUsage.rss() - before) / files / 1024).toFixed(2)} KiB`);
}
