/** Places where commands run apart from the host, and the shell over them. */
export { SubprocessSandbox } from './sandbox/docker.js';
export { NoopSandbox } from './sandbox/host.js';
export { SandboxShell } from './sandbox/shell.js';
