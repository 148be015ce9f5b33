/** Fails to compile when the code and index.d.ts disagree. Nothing here runs. */
import type * as declared from '../index.js';
import type * as actual from './index.js';

type Declared = typeof declared;
type Actual = typeof actual;

/** `never` when both sides export the same names; else the names that differ. */
type Missing = Exclude<keyof Declared, keyof Actual> | Exclude<keyof Actual, keyof Declared>;

/** What a class promises to its users: public members, constructor arguments. */
type Surface<T> = T extends abstract new (...args: infer A) => infer I ? { args: A; members: Pick<I, keyof I> } : T;
type Surfaces<T> = { [K in keyof T]: Surface<T[K]> };

type Check<_A extends _B, _B> = true;

export type SameNames = Check<Missing, never>;
/** Everything declared is there, with the declared type. */
export type Kept = Check<Surfaces<Actual>, Surfaces<Declared>>;
