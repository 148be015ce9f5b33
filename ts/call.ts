/** The one way from TypeScript into the addon: signals in, classed errors out. */
import { CancelHandle } from '#native';
import type { WorkspaceErrorCode } from './providers.js';
import { PermissionDeniedError, WorkspaceClosedError, WorkspaceError } from './errors.js';

/** After an abort the operation itself is waited for this long, so that it can clean up; then the call settles. */
const ABORT_GRACE_MS = 200;
const PREFIX = 'croft:';

type Start<T> = (cancel: CancelHandle | null) => T | Promise<T>;

/** Runs `start`; its failure becomes a `WorkspaceError`, an abort settles within 250 ms. */
export async function call<T>(start: Start<T>, signal?: AbortSignal): Promise<T> {
  if (signal) return await callWithSignal(start, signal);
  try {
    return await start(null);
  } catch (error) {
    throw fromNative(error);
  }
}

/** As `call`, for what answers on the spot. */
export function callSync<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw fromNative(error);
  }
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

async function callWithSignal<T>(start: Start<T>, signal: AbortSignal): Promise<T> {
  throwIfAborted(signal);
  const cancel = new CancelHandle();
  let rejectAborted: (error: WorkspaceError) => void = () => {};
  const aborted = new Promise<never>((_, reject) => (rejectAborted = reject));
  aborted.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    cancel.cancel();
    timer = setTimeout(() => rejectAborted(abortError(signal)), ABORT_GRACE_MS);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([start(cancel), aborted]);
  } catch (error) {
    throw withReason(fromNative(error), signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** An `ABORTED` failure that the core reported carries the signal's reason like one made here. */
function withReason(error: unknown, signal: AbortSignal): unknown {
  const aborted = error instanceof WorkspaceError && error.code === 'ABORTED' && error.cause === undefined;
  return aborted ? abortError(signal) : error;
}

export function abortError(signal: AbortSignal): WorkspaceError {
  return new WorkspaceError('the call was aborted', 'ABORTED', { cause: signal.reason });
}

/** Rebuilt here and not in Rust: an error made natively has no JavaScript stack. */
export function fromNative(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (isConversionFailure(error)) return new WorkspaceError(`an argument has the wrong type: ${error.message}`, 'INVALID_ARGUMENT', { cause: error });
  if (!error.message.startsWith(PREFIX)) return error;
  const { code, message, path } = JSON.parse(error.message.slice(PREFIX.length)) as NativeFailure;
  if (code === 'POLICY_DENIED') return new PermissionDeniedError(message, { path: path ?? undefined });
  if (code === 'CLOSED') return new WorkspaceClosedError(message);
  return new WorkspaceError(message, code, { path: path ?? undefined });
}

/** Node-API refused to convert an argument that the checks before let through. */
function isConversionFailure(error: Error & { code?: unknown }): boolean {
  return typeof error.code === 'string' && /^(InvalidArg|\w+Expected)$/.test(error.code);
}

interface NativeFailure {
  code: WorkspaceErrorCode;
  message: string;
  path: string | null;
}
