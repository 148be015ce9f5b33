/** Arguments at the door: refused by name before anything starts. */
import type { z } from 'zod';
import { WorkspaceError } from './errors.js';

export function invalid(message: string): WorkspaceError {
  return new WorkspaceError(message, 'INVALID_ARGUMENT');
}

/** A lone surrogate would arrive in Rust as U+FFFD and name another file. */
export function checkString(name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw invalid(`${name} must be a string, not ${describe(value)}`);
  if (!value.isWellFormed()) throw invalid(`${name} contains a lone surrogate, which no file can hold: remove it`);
}

export function checkContent(name: string, value: unknown): asserts value is string | Uint8Array {
  if (value instanceof Uint8Array) return;
  if (typeof value !== 'string') throw invalid(`${name} must be a string or a Uint8Array, not ${describe(value)}`);
  checkString(name, value);
}

export function checkLimit(name: string, bytes: number, limit: number): void {
  if (bytes <= limit) return;
  throw new WorkspaceError(`${name} is ${bytes} bytes, over the limit of ${limit} bytes: write it in parts`, 'TOO_LARGE');
}

/** Options of a constructor: an unknown or ill-typed one is an error that names it, not a silent default. */
export function checkOptions<T>(what: string, schema: z.ZodType<T>, options: unknown): T {
  const parsed = schema.safeParse(options);
  if (parsed.success) return parsed.data;
  throw invalid(`${what}: ${explainIssues(parsed.error)}`);
}

export function explainIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`).join('; ');
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `${typeof value}`;
}
