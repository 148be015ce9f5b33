/** A workspace's commands when an executor runs them: what its adapter is told of the workspace, and the end of all that was started. */
import type { NativeAdopted } from '#native';
import { abortError, throwIfAborted } from './call.js';
import { WorkspaceClosedError, WorkspaceError } from './errors.js';
import { guarded, MAX_BACKGROUND_CHARS, type Commands } from './process.js';
import type * as api from './providers.js';
import { asWorkspaceError, checkEnv, checkWhole } from './sandbox/adapter.js';
import { ask, PATIENCE_MS, whatToRun, type Place, type Settings } from './sandbox/ask.js';

/** How long a process in a sandbox may take to end when it is told to; a container needs about one second. */
const END_PATIENCE_MS = 10_000;
/** The exit code of what did not tell its end. */
const LOST = 137;

/** A process in the sandbox, and its entry in the workspace's list. */
interface Background {
  process: api.SandboxProcess;
  entry: NativeAdopted;
  /** Its end is in the list; never rejects. */
  over: Promise<void>;
}

export class ExecutorCommands {
  readonly #host: Commands;
  readonly #adapter: api.SandboxAdapter;
  readonly #root: string;
  readonly #policy: api.PolicySnapshot;
  readonly #settings: Settings;
  readonly #closing = new AbortController();
  readonly #calls = new Set<Promise<unknown>>();
  readonly #background = new Map<string, Background>();

  /** `host` keeps the list of background processes and looks directories up. */
  constructor(host: Commands, adapter: api.SandboxAdapter, workspace: { root: string; policy: api.PolicySnapshot }, settings: Settings) {
    this.#host = host;
    this.#adapter = adapter;
    this.#root = workspace.root;
    this.#policy = workspace.policy;
    this.#settings = settings;
    checkEnv(settings.env);
  }

  capabilities(): NonNullable<api.WorkspaceCapabilities['executor']> {
    const { kind } = this.#adapter;
    return { kind: kind === 'host' || kind === 'os' ? kind : 'container', spawn: this.#canSpawn() };
  }

  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.SandboxResult> {
    if (options.leftover === 'keep') {
      throw new WorkspaceError("leftover: 'keep' is not possible with an executor, which ends what a command leaves running: start it with spawn() instead", 'UNSUPPORTED');
    }
    return await this.#tracked(options.signal, async (signal) => {
      const what = whatToRun(this.#adapter, command, await this.#place(options.cwd), options.env, this.#settings);
      this.#checkOpen();
      return await ask(this.#adapter, what, { ...options, signal });
    });
  }

  async spawn(command: string | string[], options: api.SpawnOptions = {}): Promise<api.BackgroundProcess> {
    if (!this.#canSpawn()) throw noSpawn();
    const maxOutputChars = options.maxOutputChars ?? MAX_BACKGROUND_CHARS;
    checkWhole('maxOutputChars', maxOutputChars, 1, Number.MAX_SAFE_INTEGER);
    return await this.#tracked(options.signal, async (signal) => {
      throwIfAborted(options.signal);
      const what = whatToRun(this.#adapter, command, await this.#place(options.cwd), options.env, this.#settings);
      this.#checkOpen();
      const output = new Output(maxOutputChars);
      const started = await this.#started({ ...what, signal, onOutput: output.listener }, options.signal);
      return this.#adopt(started, Array.isArray(command) ? command.join(' ') : command, output);
    });
  }

  /** Ends it in the sandbox first; the list then has its last output. */
  async kill(id: string): Promise<api.ProcessOutput> {
    const background = this.#background.get(id);
    if (background) await end(background);
    return await this.#host.kill(id);
  }

  /** Ends every command and every background process. The adapter is its maker's, and stays open. */
  async close(): Promise<void> {
    this.#closing.abort(new WorkspaceClosedError());
    await Promise.allSettled(this.#calls);
    await Promise.allSettled([...this.#background.values()].map(end));
    await this.#host.close();
  }

  #canSpawn(): boolean {
    return typeof this.#adapter.spawn === 'function';
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new WorkspaceClosedError();
  }

  async #place(cwd: string | undefined): Promise<Place> {
    return { root: this.#root, cwd: await this.#host.realDirectory(cwd), policy: this.#policy };
  }

  /** `work` gets a signal that also `close` aborts, and `close` waits for it. */
  async #tracked<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const either = new AbortController();
    const sources = [this.#closing.signal, ...(signal ? [signal] : [])];
    const onAbort = (event: Event): void => either.abort((event.target as AbortSignal).reason);
    for (const source of sources) {
      if (source.aborted) either.abort(source.reason);
      else source.addEventListener('abort', onAbort, { once: true });
    }
    const call = work(either.signal);
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
      for (const source of sources) source.removeEventListener('abort', onAbort);
    }
  }

  /** What an aborted start still brings forth is ended when it comes. */
  async #started(options: api.SandboxSpawnOptions & { signal: AbortSignal }, caller: AbortSignal | undefined): Promise<api.SandboxProcess> {
    const { signal } = options;
    const stopped = (): Error => (caller?.aborted ? abortError(caller) : new WorkspaceClosedError());
    if (signal.aborted) throw stopped();
    const starting = this.#adapter.spawn!(options);
    let timer: NodeJS.Timeout | undefined;
    let onAbort = (): void => {};
    const silent = new Promise<undefined>((resolve) => {
      onAbort = () => (timer = setTimeout(() => resolve(undefined), PATIENCE_MS));
      signal.addEventListener('abort', onAbort, { once: true });
    });
    try {
      const process = await Promise.race([starting, silent]);
      if (process && !signal.aborted) return process;
      const ended = starting.then(async (late) => await late.kill());
      ended.catch(() => {});
      if (process) await settled(ended, PATIENCE_MS);
    } catch (error) {
      throw signal.aborted ? stopped() : asWorkspaceError(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
    throw stopped();
  }

  #adopt(process: api.SandboxProcess, command: string, output: Output): api.BackgroundProcess {
    const entry = this.#host.adopt(process.pid ?? 0, command, output.maxChars);
    output.flowTo(entry);
    const over = Promise.resolve(process.exited).then(
      ({ exitCode, hint }) => {
        if (hint) entry.push(`\n[${hint}]\n`);
        entry.finish(Number.isInteger(exitCode) ? exitCode : LOST);
      },
      (error: unknown) => {
        entry.push(`\n[${asWorkspaceError(error).message}]\n`);
        entry.finish(LOST);
      },
    );
    const { id } = entry;
    this.#background.set(id, { process, entry, over });
    void over.finally(() => this.#background.delete(id));
    return { id, pid: process.pid ?? 0, command, status: 'running' };
  }
}

/** A sandbox that does not end it in time is told so once more by nobody: the list counts it as killed. */
async function end({ process, entry, over }: Background): Promise<void> {
  entry.expectEnd();
  const killed = Promise.resolve(process.kill()).then(async () => await over);
  killed.catch(() => {});
  try {
    await settled(killed, END_PATIENCE_MS);
  } catch (error) {
    throw asWorkspaceError(error);
  } finally {
    entry.finish(LOST);
  }
}

/** Waits for `work`, but no longer than so. */
async function settled(work: Promise<unknown>, patienceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, patienceMs)));
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Output that may come before there is an entry for it. */
class Output {
  readonly listener: api.SandboxSpawnOptions['onOutput'];
  readonly maxChars: number;
  #early = '';
  #entry: NativeAdopted | undefined;

  constructor(maxChars: number) {
    this.maxChars = maxChars;
    this.listener = guarded(({ text }) => {
      if (this.#entry) this.#entry.push(text);
      else this.#early = (this.#early + text).slice(-2 * maxChars);
    });
  }

  flowTo(entry: NativeAdopted): void {
    this.#entry = entry;
    entry.push(this.#early);
    this.#early = '';
  }
}

function noSpawn(): WorkspaceError {
  const message = "the workspace's executor cannot keep a process in the background: its adapter has no spawn(). Run the command in the foreground with a timeout, or use an executor that has it (SubprocessSandbox, NoopSandbox)";
  return new WorkspaceError(message, 'UNSUPPORTED');
}
