/** What a tool is: a checked input, an approval question, an execution that fails with a WorkspaceError. */
import type { z } from 'zod';
import { explainIssues } from '../check.js';
import { WorkspaceError } from '../errors.js';
import type { Tool, ToolCallOptions } from '../providers.js';

export type Approval<Input> = boolean | ((input: Input) => boolean | Promise<boolean>) | undefined;

export interface ToolSpec<Input, Output> {
  name: string;
  description: string;
  schema: z.ZodType<Input>;
  readOnly: boolean;
  approval?: Approval<Input>;
  run(input: Input, options: ToolCallOptions): Promise<Output>;
}

export function defineTool<Input, Output>(spec: ToolSpec<Input, Output>): Tool<Input, Output> {
  const { name, description, schema, readOnly, approval = false } = spec;
  return {
    name,
    description,
    inputSchema: schema,
    readOnly,
    // Reads never disturb each other; writes of one file are serialised below, but their order is the model's.
    parallel: readOnly,
    needsApproval: async (input) => {
      const checked = parseInput(name, schema, input);
      return typeof approval === 'function' ? await approval(checked) : approval;
    },
    execute: async (input, options = {}) => await spec.run(parseInput(name, schema, input), options),
  };
}

function parseInput<Input>(tool: string, schema: z.ZodType<Input>, input: unknown): Input {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new WorkspaceError(`${tool}: ${explainIssues(parsed.error)}`, 'INVALID_ARGUMENT');
}
