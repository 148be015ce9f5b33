/** The credential broker: options in, listeners out. The proxy itself is native; functions that supply a header run here. */
import { NativeBroker, type NativeBrokerEvent, type NativeListener, type NativeRule } from '#native';
import { z } from 'zod';
import { HeaderFunctions } from './broker-functions.js';
import { call, callSync } from './call.js';
import { checkOptions, invalid } from './check.js';
import type * as api from './providers.js';

const headerSchema = z.record(z.string(), z.union([z.string(), z.custom<api.HeaderFunction>(isFunction, 'expected a string or a function')]));
const portsSchema = z.array(z.number());
const millis = z.number().optional();
const count = z.number().optional();

const ruleSchema = z.strictObject({
  headers: headerSchema,
  cleartext: z.boolean().optional(),
  ports: portsSchema.optional(),
  scrub: z.boolean().optional(),
});

const optionsSchema = z.strictObject({
  rules: z.record(z.string(), z.unknown()).optional(),
  allow: z.array(z.string()).optional(),
  allowPrivate: z.array(z.string()).optional(),
  ports: portsSchema.optional(),
  host: z.string().optional(),
  port: z.number().optional(),
  clients: z.union([z.string(), z.array(z.string())]).optional(),
  auth: z.boolean().optional(),
  ca: z.union([z.string(), z.array(z.string())]).optional(),
  sni: z.enum(['match', 'strict', 'off']).optional(),
  scrub: z.boolean().optional(),
  rewriteLocation: z.boolean().optional(),
  timeouts: z
    .strictObject({ headerMs: millis, connectMs: millis, functionMs: millis, responseMs: millis, idleMs: millis, keepAliveMs: millis, halfCloseMs: millis, poolIdleMs: millis })
    .optional(),
  limits: z
    .strictObject({ maxHeadBytes: count, maxTargetBytes: count, maxConnections: count, maxConnectionsPerPeer: count, maxIdlePerHost: count })
    .optional(),
  upstreamProxy: z.string().optional(),
  onRequest: z.custom<(event: api.BrokerEvent) => void>(isFunction, 'expected a function').optional(),
  onError: z.custom<(error: unknown, context: { host: string; header: string }) => void>(isFunction, 'expected a function').optional(),
  resolve: z.custom<(host: string) => string[] | Promise<string[]>>(isFunction, 'expected a function').optional(),
});

const listenSchema = z.strictObject({
  host: z.string(),
  port: z.number().optional(),
  clients: z.union([z.string(), z.array(z.string())]).optional(),
  allow: z.array(z.string()).optional(),
  auth: z.boolean().optional(),
});

const adoptSchema = z.strictObject({ fd: z.number().int(), allow: z.array(z.string()).optional(), auth: z.boolean().optional() });

export async function createCredentialBroker(options: api.CredentialBrokerOptions): Promise<api.CredentialBroker> {
  const checked = checkOptions('createCredentialBroker', optionsSchema, options);
  const functions = new HeaderFunctions(checked.onError);
  const rules = Object.entries(checked.rules ?? {}).map(([host, rule]) => nativeRule(host, rule, functions, checked.scrub ?? false));
  const nativeOptions = {
    rules,
    allowPrivate: checked.allowPrivate ?? [],
    ports: checked.ports ?? [],
    ca: checked.ca === undefined ? undefined : list(checked.ca).join('\n'),
    sni: checked.sni ?? ('match' as const),
    rewriteLocation: checked.rewriteLocation ?? false,
    timeouts: withoutUndefined(checked.timeouts),
    limits: withoutUndefined(checked.limits),
    upstreamProxy: upstreamProxy(checked.upstreamProxy),
  };
  const native = callSync(() =>
    NativeBroker.create(nativeOptions, functions.ask, functions.withdraw, observer(checked.onRequest), lookup(checked.resolve)),
  );
  const main = await listen(native, { ...checked, host: checked.host ?? '127.0.0.1' });
  return new Broker(native, main);
}

class Broker implements api.CredentialBroker {
  readonly url: string;
  readonly env: Record<string, string>;
  readonly #native: NativeBroker;
  readonly #main: api.BrokerListener;
  #closed: Promise<void> | undefined;

  constructor(native: NativeBroker, main: api.BrokerListener) {
    this.#native = native;
    this.#main = main;
    this.url = main.url;
    this.env = main.env;
  }

  baseUrl(host: string): string {
    return this.#main.baseUrl(host);
  }

  async listen(options: api.BrokerListenOptions): Promise<api.BrokerListener> {
    return await listen(this.#native, checkOptions('listen', listenSchema, options));
  }

  async adopt(options: api.BrokerAdoptOptions): Promise<api.BrokerListener> {
    const { fd, allow = [], auth = false } = checkOptions('adopt', adoptSchema, options);
    return new Listener(await call(() => this.#native.adopt(fd, allow, auth)));
  }

  stats(): api.BrokerStats {
    return callSync(() => this.#native.stats());
  }

  close(options: { drainMs?: number } = {}): Promise<void> {
    this.#closed ??= call(() => this.#native.close(options.drainMs ?? 0));
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** For the sandboxes of this package. */
  get native(): NativeBroker {
    return this.#native;
  }
}

class Listener implements api.BrokerListener {
  readonly url: string;
  readonly env: Record<string, string>;
  readonly #native: NativeListener;
  #closed: Promise<void> | undefined;

  constructor(native: NativeListener) {
    this.#native = native;
    this.url = native.url;
    this.env = native.env();
  }

  baseUrl(host: string): string {
    return callSync(() => this.#native.baseUrl(host));
  }

  close(options: { drainMs?: number } = {}): Promise<void> {
    this.#closed ??= call(() => this.#native.close(options.drainMs ?? 0));
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

async function listen(native: NativeBroker, options: api.BrokerListenOptions): Promise<Listener> {
  const request = {
    host: options.host === 'localhost' ? '127.0.0.1' : options.host,
    port: options.port ?? 0,
    clients: list(options.clients ?? []),
    allow: options.allow ?? [],
    auth: options.auth ?? false,
  };
  return new Listener(await call(() => native.listen(request)));
}

/** `{ authorization: '…' }`, or `{ headers: { … }, cleartext, … }`. A header may itself be called `headers`. */
function nativeRule(host: string, given: unknown, functions: HeaderFunctions, scrub: boolean): NativeRule {
  if (typeof given !== 'object' || given === null) throw invalid(`createCredentialBroker: rules.${host}: expected an object`);
  const full = 'headers' in given && typeof given.headers === 'object';
  const rule = full
    ? checkOptions(`createCredentialBroker: rules.${host}`, ruleSchema, given)
    : { headers: checkOptions(`createCredentialBroker: rules.${host}`, headerSchema, given) };
  const headers = Object.entries(rule.headers).map(([name, value]) => ({
    name,
    value: typeof value === 'string' ? value : functions.add(value),
  }));
  const { cleartext = false, ports = [], scrub: own = scrub } = rule as api.BrokerRule;
  return { host, headers, cleartext, ports, scrub: own };
}

function upstreamProxy(option: string | undefined): string | undefined {
  if (option !== 'env') return option;
  return process.env['HTTPS_PROXY'] ?? process.env['https_proxy'];
}

/** What the observer throws is its own affair, and must not end the process. */
function observer(onRequest: ((event: api.BrokerEvent) => void) | undefined): ((event: NativeBrokerEvent) => void) | undefined {
  if (!onRequest) return undefined;
  let told = false;
  return ({ timeMs, durationMs, ...event }) => {
    try {
      onRequest({ ...event, time: timeMs, ms: durationMs });
    } catch (error) {
      if (!told) process.emitWarning(`onRequest threw: ${String(error)}`, 'CroftWarning');
      told = true;
    }
  };
}

function lookup(resolve: ((host: string) => string[] | Promise<string[]>) | undefined): ((host: string) => Promise<string[]>) | undefined {
  return resolve && (async (host) => (await resolve(host)).map(String));
}

function list(value: string | string[]): string[] {
  return typeof value === 'string' ? [value] : value;
}

function withoutUndefined(values: Record<string, number | undefined> | undefined): Record<string, number> {
  const given = Object.entries(values ?? {}).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(given);
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}
