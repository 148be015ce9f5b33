/** croft tools for the AI SDK, version 7: `tools` and `toolApproval` of generateText, streamText and ToolLoopAgent. */
import type { ToolSet } from 'ai';
import type { Tool } from '../providers.js';

/**
 * The tools by name. A failing tool throws, which the SDK reports to the model as a tool error, and the run goes on.
 *
 * @example
 * generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), prompt })
 */
export function aiTools(tools: readonly Tool[]): ToolSet {
  return Object.fromEntries(tools.map((tool) => [tool.name, aiTool(tool)])) as ToolSet;
}

function aiTool({ description, inputSchema, execute, readOnly }: Tool) {
  return {
    description,
    inputSchema,
    metadata: { readOnly },
    execute: async (input: unknown, options: { toolCallId: string; abortSignal?: AbortSignal | undefined }) =>
      await execute(input, { toolCallId: options.toolCallId, signal: options.abortSignal }),
  };
}

/** Each tool's `needsApproval` as the SDK's `toolApproval`: the run pauses where a human is to decide. */
export function aiToolApproval(tools: readonly Tool[]): Record<string, (input: unknown) => Promise<'user-approval' | 'not-applicable'>> {
  return Object.fromEntries(tools.map((tool) => [tool.name, async (input: unknown) => await ask(tool, input)]));
}

async function ask(tool: Tool, input: unknown): Promise<'user-approval' | 'not-applicable'> {
  return (await tool.needsApproval(input)) ? 'user-approval' : 'not-applicable';
}
