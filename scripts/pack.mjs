// Puts the built binaries into their platform package and checks that the ELF names the libc the package promises.
//   node scripts/pack.mjs linux-x64-gnu      `--manifests` rewrites every npm/*/package.json instead
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PLATFORMS } from './platforms.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { version, license, engines } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));

function manifest({ name, os, cpu, libc }) {
  const main = `croft.${name}.node`;
  const files = os === 'win32' ? [main] : [main, 'croft-exec'];
  return {
    name: `croft-${name}`,
    version,
    description: `The ${name} binaries of croft`,
    license,
    engines,
    os: [os],
    cpu: [cpu],
    ...(libc ? { libc: [libc] } : {}),
    main,
    files,
  };
}

function writeManifests() {
  for (const platform of PLATFORMS) {
    mkdirSync(`${root}/npm/${platform.name}`, { recursive: true });
    writeFileSync(`${root}/npm/${platform.name}/package.json`, `${JSON.stringify(manifest(platform), null, 2)}\n`);
  }
}

// The dynamic section lists needed libraries by name: glibc is libc.so.6, musl is libc.musl-*.so.1 or libc.so.
function checkLibc(file, libc) {
  const bytes = readFileSync(file).toString('latin1');
  const glibc = bytes.includes('libc.so.6\0');
  if (libc === 'glibc' && !glibc) throw new Error(`${file} does not name libc.so.6`);
  if (libc === 'musl' && glibc) throw new Error(`${file} names libc.so.6 but is for musl`);
}

function pack(name) {
  const platform = PLATFORMS.find((one) => one.name === name);
  if (!platform) throw new Error(`no platform ${name}: ${PLATFORMS.map((one) => one.name).join(', ')}`);
  const { main, files } = manifest(platform);
  for (const file of files) {
    const built = `${root}/native/${file}`;
    if (!existsSync(built)) throw new Error(`native/${file} is missing: build first`);
    copyFileSync(built, `${root}/npm/${name}/${file}`);
  }
  if (platform.libc) checkLibc(`${root}/npm/${name}/${main}`, platform.libc);
}

writeManifests();
const [name] = process.argv.slice(2);
if (name !== '--manifests') pack(name);
