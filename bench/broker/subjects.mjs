// What bench/broker measures: the broker, the floor, and the proxies that are installed here. How is left to broker.mjs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { example } from './processes.mjs';

export const BROKER = 'broker';
export const FLOOR = 'bare hyper';

/** proxy-chain in a folder of its own: it is no dependency of this package. */
function proxyChain() {
  const home = join(tmpdir(), 'croft-bench-proxy-chain');
  if (!existsSync(join(home, 'node_modules'))) {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), '{ "private": true, "type": "module" }\n');
    const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', 'proxy-chain@2'];
    if (spawnSync('npm', install, { cwd: home, stdio: 'ignore' }).status !== 0) return undefined;
  }
  writeFileSync(join(home, 'serve.mjs'), `import { Server } from 'proxy-chain';\nawait new Server({ port: Number(process.argv[2]), host: '127.0.0.1' }).listen();\n`);
  return join(home, 'serve.mjs');
}

function has(command) {
  return ['/usr/sbin', '/usr/bin', '/usr/local/sbin'].map((place) => join(place, command)).find(existsSync);
}

const squidConfig = (port, { folder }) => `http_port 127.0.0.1:${port}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
pid_filename ${folder}/squid.pid
cache_effective_user proxy
shutdown_lifetime 0 seconds
pinger_enable off
memory_pools off
`;
const tinyConfig = (port, { folder, upstream }) => `Port ${port}\nListen 127.0.0.1\nMaxClients 4096\nTimeout 600\nLogLevel Critical\nLogFile "${folder}/tiny.log"\nConnectPort ${upstream}\n`;
const nginxConfig = (port, { folder, tls, ca }) => `worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log /dev/null crit; user root;
events { worker_connections 4096; }
http { access_log off; upstream up { server 127.0.0.1:${tls}; keepalive 64; keepalive_requests 1000000; }
server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location /__broker/localhost:${tls}/ { proxy_pass https://up/; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_set_header Host localhost:${tls}; proxy_set_header Authorization "Bearer 0123456789abcdef"; proxy_ssl_verify on;
proxy_ssl_trusted_certificate ${ca}; proxy_ssl_name localhost; proxy_ssl_server_name on; proxy_ssl_session_reuse on; } } }
`;

/** `plain`: it is a forward proxy; `path`: it serves the path form over verified TLS. */
export function subjects(site) {
  const { folder, upstream, tls, ca } = site;
  const config = (name, text) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const chain = proxyChain();
  const all = [
    { name: BROKER, plain: true, path: true, start: (port) => [example('bench_broker'), [port, upstream, tls, ca]] },
    { name: FLOOR, plain: true, start: (port) => [example('bare_proxy'), [port]] },
    { name: 'squid', needs: has('squid'), plain: true, start: (port) => ['squid', ['-N', '-n', `croft${process.pid}`, '-f', config('squid.conf', squidConfig(port, site))]] },
    { name: 'tinyproxy', needs: has('tinyproxy'), plain: true, start: (port) => ['tinyproxy', ['-d', '-c', config('tiny.conf', tinyConfig(port, site))]] },
    { name: 'proxy-chain', needs: chain, plain: true, start: (port) => [process.execPath, [chain, port]] },
    { name: 'nginx', needs: has('nginx'), path: true, start: (port) => ['nginx', ['-c', config('nginx.conf', nginxConfig(port, site))]] },
  ];
  return all.filter((one) => !('needs' in one) || one.needs);
}
