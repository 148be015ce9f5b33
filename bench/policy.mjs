// Judging command lines: how long one decision takes. It runs on the caller's thread, so the slow end matters.
import { MemoryWorkspace } from 'croft';

const LINES = [
  'ls',
  'npm test',
  'git status && git diff --stat',
  "grep -rn 'TODO' src | head -20",
  'cd packages/a && npm run build > build.log 2>&1',
  'for f in src/*.ts; do wc -l "$f"; done',
  'git commit -m "$(cat <<\'EOF\'\nfix: the thing\n\nwith a body of a few lines, (brackets) and `ticks`\nEOF\n)"',
  "find . -name '*.log' -mtime +7 -exec rm {} +",
  "env NODE_ENV=test timeout 60 sh -c 'npm ci && npm test -- --coverage'",
  'python3 - <<PY\nprint("hello")\nPY',
];

const workspace = new MemoryWorkspace({
  mode: 'coding',
  deniedPaths: ['.env*', 'secrets', '~/.ssh', 'build/out', '*.pem'],
  commandRules: ['npm test', 'npm run', 'git status', 'git diff', 'ls', 'cat', 'grep', 'head', 'wc', 'find'].map((pattern) => ({ pattern, action: 'allow' })),
});

for (let round = 0; round < 200; round++) for (const line of LINES) workspace.decideCommand(line);
const times = [];
for (let round = 0; round < 1000; round++) {
  for (const line of LINES) {
    const start = process.hrtime.bigint();
    workspace.decideCommand(line);
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
}
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor(times.length * share)].toFixed(0);
console.log(`decideCommand, ${times.length} calls: p50 ${at(0.5)} us, p99 ${at(0.99)} us, p99.9 ${at(0.999)} us, slowest ${at(0.99999)} us`);
const long = `${'true; '.repeat(2000)}ls`;
const start = performance.now();
workspace.decideCommand(long);
console.log(`a line of ${long.length} bytes and 2001 commands: ${(performance.now() - start).toFixed(1)} ms`);
await workspace.close();
