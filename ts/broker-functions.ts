/** Header functions on the JavaScript side: called by number, answered in text, withdrawn when nobody waits any more. */
import type { NativeQuestion } from '#native';
import type * as api from './providers.js';

const FAILED = 'e';
const NO_STRING = 'n';

type OnError = (error: unknown, context: { host: string; header: string }) => void;

export class HeaderFunctions {
  readonly #functions: api.HeaderFunction[] = [];
  readonly #pending = new Map<number, AbortController>();
  readonly #onError: OnError | undefined;

  constructor(onError: OnError | undefined) {
    this.#onError = onError;
  }

  /** The number by which the native side asks for it. */
  add(value: api.HeaderFunction): number {
    return this.#functions.push(value) - 1;
  }

  /** Never throws: an exception here would be nobody's. A value that is there at once saves a promise. */
  readonly ask = (question: NativeQuestion): string | Promise<string> => {
    try {
      const value: unknown = this.#functions[question.function]?.(this.#context(question));
      if (!isThenable(value)) return this.#done(question, value);
      return Promise.resolve(value).then(
        (late) => this.#done(question, late),
        (error: unknown) => this.#failed(question, error),
      );
    } catch (error) {
      return this.#failed(question, error);
    }
  };

  readonly withdraw = (id: number): void => {
    this.#pending.get(id)?.abort();
    this.#pending.delete(id);
  };

  /** The signal is made only for a function that looks at it. */
  #context(question: NativeQuestion): api.HeaderContext {
    const pending = this.#pending;
    const { id, header, host, port, method, path } = question;
    return {
      header,
      host,
      port,
      method,
      path,
      get signal(): AbortSignal {
        const controller = pending.get(id) ?? new AbortController();
        pending.set(id, controller);
        return controller.signal;
      },
    };
  }

  #done({ id }: NativeQuestion, value: unknown): string {
    this.#pending.delete(id);
    return typeof value === 'string' && value.isWellFormed() ? `v${value}` : NO_STRING;
  }

  #failed({ id, host, header }: NativeQuestion, error: unknown): string {
    this.#pending.delete(id);
    try {
      this.#onError?.(error, { host, header });
    } catch {
      // An observer that throws changes nothing: the request is refused either way.
    }
    return FAILED;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
