/** The shell tool: rules before approval, a bounded wait, what the model reads of the output. */
import { z } from 'zod';
import { checkOptions, checkString } from '../check.js';
import { PermissionDeniedError } from '../errors.js';
import type { ExecResult, ShellProvider, ShellToolInput, ShellToolOptions, ShellToolResult, Tool } from '../providers.js';
import { clipText, stripAnsi } from '../text.js';
import { checkRules } from './rules.js';
import { defineTool, type Approval } from './tool.js';

const ms = z.number().int().min(1);
const rules = z.array(z.union([z.string().min(1, 'a pattern must not be empty'), z.instanceof(RegExp)]));

const optionsSchema = z.strictObject({
  needsApproval: z.custom<Approval<string>>((value) => typeof value === 'boolean' || typeof value === 'function', 'expected a boolean or a function').default(true),
  allow: rules.optional(),
  deny: rules.optional(),
  defaultTimeoutMs: ms.default(120_000),
  maxTimeoutMs: ms.default(600_000),
  maxOutputChars: z.number().int().min(200).default(30_000),
  cwd: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
  name: z.string().min(1).default('shell'),
  stripAnsi: z.boolean().default(true),
});

type Settings = z.output<typeof optionsSchema>;

/** Bytes kept per character asked for: enough for UTF-8 and for escape sequences that are removed later. */
const BYTES_PER_CHAR = 4;

export function createShellTool(shell: ShellProvider, options: ShellToolOptions = {}): Tool<ShellToolInput, ShellToolResult> {
  const settings = checkOptions('createShellTool', optionsSchema, options);
  const { needsApproval } = settings;
  return defineTool<ShellToolInput, ShellToolResult>({
    name: settings.name,
    description: describe(settings),
    readOnly: false,
    schema: inputSchema(settings),
    // A refused command is never offered for approval: `run` refuses it with the reason.
    approval: async ({ command }) => {
      if (refusal(command, settings)) return false;
      return typeof needsApproval === 'function' ? await needsApproval(command) : (needsApproval ?? true);
    },
    run: async (input, { signal }) => {
      const refused = refusal(input.command, settings);
      if (refused) throw new PermissionDeniedError(refused);
      return answer(await exec(shell, input, settings, signal), settings);
    },
  });
}

function describe({ defaultTimeoutMs }: Settings): string {
  return (
    'Runs a command line in the workspace and returns exitCode, stdout and stderr. stdin is empty: use flags that do not ask. ' +
    `The whole process tree is ended after timeout_ms (default ${defaultTimeoutMs}).`
  );
}

function inputSchema({ maxTimeoutMs }: Settings): z.ZodType<ShellToolInput> {
  return z.object({
    command: z.string().min(1).describe('The command line'),
    timeout_ms: z.number().int().min(1).nullish().describe(`Milliseconds, at most ${maxTimeoutMs}`),
    cwd: z.string().nullish().describe('Workspace-relative directory; default: the root'),
    description: z.string().nullish().describe('What the command is for, in a few words'),
  }) as unknown as z.ZodType<ShellToolInput>;
}

function refusal(command: string, { allow, deny }: Settings): string | undefined {
  checkString('command', command);
  return checkRules(command, allow, deny);
}

async function exec(shell: ShellProvider, input: ShellToolInput, settings: Settings, signal: AbortSignal | undefined): Promise<ExecResult> {
  const timeoutMs = Math.min(input.timeout_ms ?? settings.defaultTimeoutMs, settings.maxTimeoutMs);
  const cwd = input.cwd ?? settings.cwd;
  return await shell.exec(input.command, {
    timeoutMs,
    maxOutputBytes: settings.maxOutputChars * BYTES_PER_CHAR,
    ...(cwd === undefined ? {} : { cwd }),
    ...(settings.env ? { env: settings.env } : {}),
    ...(signal ? { signal } : {}),
  });
}

function answer(result: ExecResult, settings: Settings): ShellToolResult {
  const note = result.note ?? endNote(result);
  return {
    exitCode: result.exitCode,
    stdout: readable(result.stdout, settings),
    stderr: readable(result.stderr, settings),
    ...(result.timedOut ? { timedOut: true as const } : {}),
    ...(result.aborted ? { aborted: true as const } : {}),
    ...(note ? { note } : {}),
  };
}

function readable(output: string, settings: Settings): string {
  return clipText(settings.stripAnsi ? stripAnsi(output) : output, settings.maxOutputChars);
}

/** For providers that give no note of their own. */
function endNote({ timedOut, aborted }: ExecResult): string | undefined {
  if (timedOut) return 'The command was ended at its timeout; pass a larger timeout_ms if it needs longer.';
  return aborted ? 'The command was ended because the run was aborted.' : undefined;
}
