// Commands beside child_process. Each part runs in a process of its own: what one leaves resident would change the
// price of the next one's fork.
//   node bench/exec.mjs
import { exec as execCallback, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { NodeWorkspace } from 'croft';
import { compare } from './measure.mjs';

const exec = promisify(execCallback);
const MIB = 1024 * 1024;

/** Touches every page, so that fork has its page tables to copy. */
function resident(mib) {
  const blocks = Array.from({ length: mib / 64 }, () => Buffer.alloc(64 * MIB, 1));
  return () => blocks.length;
}

async function pair(title, command, options = {}, rounds = 40) {
  const workspace = new NodeWorkspace({ root: '/tmp' });
  await compare(title, {
    croft: () => workspace.exec(command, options),
    'child_process.exec': () => exec(command, { cwd: '/tmp', maxBuffer: 1 << 30 }),
  }, { rounds });
  await workspace.close();
}

/** Written by the shortest way there is, so that the reader is measured and not a producer that fills 8 KB at a time. */
async function flood(title, maxOutputBytes) {
  const file = join(tmpdir(), `croft-bench-flood-${process.pid}`);
  writeFileSync(file, Buffer.alloc(50_000_000, 'a'));
  try {
    await pair(title, `cat ${file}`, { maxOutputBytes }, 15);
  } finally {
    rmSync(file);
  }
}

const PARTS = {
  small: () => pair('exec `true`, small process (supervised by croft-exec)', 'true', {}, 150),
  resident: async () => {
    const keep = resident(512);
    await pair('exec `true`, 512 MB resident', 'true');
    return keep();
  },
  output: () => pair('exec 1 MB of output, all of it kept', 'head -c 1000000 /dev/zero | tr "\\0" a', { maxOutputBytes: 2_000_000 }),
  flood: () => flood('exec 50 MB of output, 64 KB kept (child_process keeps all)', 65_536),
  whole: () => flood('exec 50 MB of output, all of it kept', 110_000_000),
  eight: async () => {
    const workspace = new NodeWorkspace({ root: '/tmp' });
    const eight = async (run) => {
      for (let round = 0; round < 4; round++) await Promise.all(Array.from({ length: 8 }, run));
    };
    await compare('32 x `true`, 8 at a time', {
      croft: () => eight(() => workspace.exec('true')),
      'child_process.exec': () => eight(() => exec('true', { cwd: '/tmp' })),
    });
    await workspace.close();
  },
};

const part = process.argv[2];
if (part) {
  await PARTS[part]();
} else {
  for (const name of Object.keys(PARTS)) {
    const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), name], { stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
}
