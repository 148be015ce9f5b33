/** Commands in Docker containers: options in, results out. The containers are native business. */
import { CancelHandle, checkAllowList, NativeBroker, NativeSandbox, type NativeExit } from '#native';
import { z } from 'zod';
import { call, callSync, fromNative } from '../call.js';
import { checkOptions, checkString, invalid } from '../check.js';
import { WorkspaceError } from '../errors.js';
import { execResult, guarded } from '../process.js';
import type * as api from '../providers.js';
import { checkProgram, checkRun, DEFAULT_TIMEOUT_MS, sandboxExit, sandboxProcess } from './adapter.js';

const name = z.string().min(1, 'must not be empty');
const record = z.record(z.string(), z.string());

const optionsSchema = z.strictObject({
  image: name,
  network: z.union([z.enum(['none', 'default']), z.strictObject({ allow: z.array(z.string()) })]).default('none'),
  broker: z.custom<api.CredentialBroker>((value) => typeof value === 'object' && value !== null, 'expected a credential broker').optional(),
  egress: z.enum(['socket', 'network']).optional(),
  networkName: name.optional(),
  socketPath: name.optional(),
  user: name.optional(),
  memory: z.union([z.string(), z.number()]).optional(),
  cpus: z.number().min(0.01).optional(),
  pidsLimit: z.number().int().min(1).default(512),
  readOnlyRoot: z.boolean().default(false),
  tmpfs: z.union([z.array(z.string().startsWith('/')), record]).optional(),
  timeoutMs: z.number().int().min(1).default(DEFAULT_TIMEOUT_MS),
  reuse: z.enum(['command', 'pool', 'session']).default('command'),
  transport: z.enum(['socket', 'attach']).optional(),
  labels: record.optional(),
});

export class SubprocessSandbox implements api.SandboxAdapter, AsyncDisposable {
  readonly kind = 'container';
  readonly network: 'none' | 'default' | { allow: string[] };
  readonly #native: NativeSandbox;
  readonly #timeoutMs: number;
  #closed: Promise<void> | undefined;

  constructor(options: api.SubprocessSandboxOptions) {
    const checked = checkOptions('SubprocessSandbox', optionsSchema, options);
    const { network, memory, tmpfs, broker, timeoutMs, ...rest } = checked;
    checkString('image', checked.image);
    this.network = typeof network === 'string' ? network : { allow: callSync(() => checkAllowList(network.allow)) };
    this.#timeoutMs = timeoutMs;
    const native = {
      ...rest,
      network: typeof network === 'string' ? network : 'allow',
      allow: typeof network === 'string' ? [] : network.allow,
      memory: memory === undefined ? undefined : String(memory),
      tmpfs: Array.isArray(tmpfs) ? Object.fromEntries(tmpfs.map((path) => [path, ''])) : (tmpfs ?? {}),
      labels: checked.labels ?? {},
      hostEnv: JSON.stringify(process.env),
    };
    this.#native = callSync(() => new NativeSandbox(native, broker && nativeBroker(broker)));
  }

  async run(options: api.SandboxRunOptions): Promise<api.SandboxResult> {
    const { signal } = options;
    const request = checkRun(options, this.#timeoutMs);
    const onOutput = options.onOutput && guarded(options.onOutput);
    const cancel = signal ? new CancelHandle() : null;
    const onAbort = (): void => cancel?.cancel();
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const { exec, oomKilled, hint } = await this.#native.run(request, cancel, onOutput);
      return { ...execResult(exec), containment: 'container', ...(oomKilled && { oomKilled }), ...(hint && { hint }) };
    } catch (error) {
      throw fromNative(error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async spawn(options: api.SandboxSpawnOptions): Promise<api.SandboxProcess> {
    const request = { ...checkProgram(options), maxOutputBytes: 0 };
    const onOutput = guarded(options.onOutput);
    let onExit: (exit: api.SandboxExit) => void = () => {};
    const exited = new Promise<api.SandboxExit>((resolve) => (onExit = resolve));
    const start = (cancel: CancelHandle | null) => this.#native.spawn(request, cancel, onOutput, (exit: NativeExit) => onExit(sandboxExit(exit)));
    return sandboxProcess(await call(start, options.signal), exited);
  }

  close(): Promise<void> {
    this.#closed ??= this.#native.close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The proxy in a container must be this package's: an allow list is only as good as who enforces it. */
function nativeBroker(broker: api.CredentialBroker): NativeBroker {
  const { native } = broker as { native?: unknown };
  if (native instanceof NativeBroker) return native;
  if (typeof broker.listen !== 'function') throw invalid('SubprocessSandbox: broker: expected what createCredentialBroker() gives');
  throw new WorkspaceError('SubprocessSandbox: broker: only a broker of createCredentialBroker() can serve a sandbox', 'UNSUPPORTED');
}
