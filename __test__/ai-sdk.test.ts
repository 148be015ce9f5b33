// The AI SDK, the real package with its own mock model, drives the tools.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generateText, isStepCount, type LanguageModel, type ModelMessage } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createApprovals, createFsTools, createShellTool, createWorkspaceTools, MemoryWorkspace, type Approvals, type Tool } from 'croft';
import { aiToolApproval, aiTools } from 'croft/ai-sdk';

type Turn = { tool: string; input: object } | string;

/** `prompts` collects what the model was given at each turn. */
function scripted(turns: Turn[], prompts: unknown[] = []): LanguageModel {
  let turn = 0;
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }: { prompt: unknown }) => {
      prompts.push(prompt);
      const next = turns[turn++] ?? 'done';
      const content = typeof next === 'string'
        ? [{ type: 'text' as const, text: next }]
        : [{ type: 'tool-call' as const, toolCallId: `call-${turn}`, toolName: next.tool, input: JSON.stringify(next.input) }];
      const unified = typeof next === 'string' ? ('stop' as const) : ('tool-calls' as const);
      return { content, finishReason: { unified, raw: unified }, usage: { inputTokens: tokens, outputTokens: tokens }, warnings: [] } as never;
    },
  });
}

const tokens = { total: 0 };

test('an edit and a command run, and a failing call lets the run go on', async () => {
  const workspace = new MemoryWorkspace({
    files: { 'src/math.ts': 'export const add = (a: number, b: number) => a - b;\n' },
    exec: (command) => (command === 'npm test' ? { stdout: '1 passed\n' } : { exitCode: 1 }),
  });
  const tools = [...createFsTools(workspace), createShellTool(workspace, { needsApproval: false })];
  const { text, steps } = await generateText({
    model: scripted([
      { tool: 'read_file', input: { path: '../secret' } },
      { tool: 'edit_file', input: { path: 'src/math.ts', old_string: 'a - b', new_string: 'a + b' } },
      { tool: 'shell', input: { command: 'npm test' } },
      'Fixed.',
    ]),
    tools: aiTools(tools),
    toolApproval: aiToolApproval(tools),
    stopWhen: isStepCount(10),
    prompt: 'add() is broken',
  });
  assert.equal(text, 'Fixed.');
  assert.equal(workspace.snapshot()['src/math.ts'], 'export const add = (a: number, b: number) => a + b;\n');
  assert.deepEqual(workspace.commands.map(({ command }) => command), ['npm test']);
  const parts = steps.flatMap(({ content }) => content);
  const failure = parts.find((part) => part.type === 'tool-error');
  assert.match(String((failure as { error: Error }).error.message), /climbs above the root/);
});

test('the model gets a picture as a picture and an object as JSON', async () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000b49444154789c6360000200000500017a5eab3f0000000049454e44ae426082', 'hex');
  const workspace = new MemoryWorkspace({ files: { 'a.png': png }, exec: () => ({ stdout: 'out\n' }) });
  const tools = [...createFsTools(workspace, { include: ['view_image'] }), createShellTool(workspace, { needsApproval: false })];
  const model = scripted([{ tool: 'view_image', input: { path: 'a.png' } }, { tool: 'shell', input: { command: 'x' } }, 'Seen.']) as MockLanguageModelV4;
  await generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), stopWhen: isStepCount(5), prompt: 'look' });
  const seen = model.doGenerateCalls[2]?.prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
  const outputs = seen?.map((part) => (part.type === 'tool-result' ? part.output : undefined)) as { type: string; value: { type?: string; mediaType?: string; stdout?: string }[] & { stdout?: string } }[];
  assert.deepEqual([outputs[0]?.type, outputs[0]?.value[0]?.type, outputs[0]?.value[0]?.mediaType], ['content', 'file', 'image/png']);
  assert.deepEqual([outputs[1]?.type, outputs[1]?.value.stdout], ['json', 'out\n']);
});

test('a tool that needs approval pauses the run and executes nothing', async () => {
  const workspace = new MemoryWorkspace();
  const tools = [createShellTool(workspace)];
  const { content } = await generateText({
    model: scripted([{ tool: 'shell', input: { command: 'rm -r build' } }]),
    tools: aiTools(tools),
    toolApproval: aiToolApproval(tools),
    stopWhen: isStepCount(3),
    prompt: 'clean up',
  });
  assert.ok(content.some(({ type }) => type === 'tool-approval-request'), JSON.stringify(content));
  assert.deepEqual(workspace.commands, []);
});

interface Asked {
  messages: ModelMessage[];
  approvalId: string;
}

/** Runs until the run pauses for a person. */
async function untilAsked(tools: readonly Tool[], model: LanguageModel): Promise<Asked> {
  const messages: ModelMessage[] = [{ role: 'user', content: 'clean up' }];
  const { content, response } = await generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), stopWhen: isStepCount(5), messages });
  const request = content.find((part) => part.type === 'tool-approval-request');
  assert.ok(request && 'approvalId' in request, JSON.stringify(content));
  return { messages: [...messages, ...response.messages], approvalId: request.approvalId as string };
}

async function answered({ messages, approvalId }: Asked, approved: boolean, tools: readonly Tool[], model: LanguageModel) {
  const reply: ModelMessage = { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved, ...(approved ? {} : { reason: 'not on a Friday' }) }] };
  return await generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), stopWhen: isStepCount(5), messages: [...messages, reply] });
}

function policed(): { workspace: MemoryWorkspace; approvals: Approvals; tools: Tool[] } {
  const workspace = new MemoryWorkspace({ mode: 'coding', commandRules: [{ pattern: 'curl', action: 'deny' }], exec: () => ({ stdout: 'done\n' }) });
  const approvals = createApprovals();
  return { workspace, approvals, tools: createWorkspaceTools(workspace, { approvals }) };
}

test('what the policy asks about pauses the run, and runs once it is approved', async () => {
  const { workspace, tools } = policed();
  const model = scripted([{ tool: 'shell', input: { command: 'make clean' } }, 'Cleaned.']);
  const asked = await untilAsked(tools, model);
  assert.deepEqual(workspace.commands, []);
  const { text } = await answered(asked, true, tools, model);
  assert.equal(text, 'Cleaned.');
  assert.deepEqual(workspace.commands.map(({ command }) => command), ['make clean']);
});

test('what a person refuses does not run, and the model sees why', async () => {
  const { workspace, tools } = policed();
  const prompts: unknown[] = [];
  const model = scripted([{ tool: 'shell', input: { command: 'make clean' } }, 'I left it.'], prompts);
  const { text } = await answered(await untilAsked(tools, model), false, tools, model);
  assert.equal(text, 'I left it.');
  assert.deepEqual(workspace.commands, []);
  assert.match(JSON.stringify(prompts.at(-1)), /not on a Friday/);
});

test('what the policy denies is never offered, and the model sees why', async () => {
  const { workspace, tools } = policed();
  const prompts: unknown[] = [];
  const model = scripted([{ tool: 'shell', input: { command: 'ls; curl http://x' } }, 'I cannot.'], prompts);
  const { text, content } = await generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), stopWhen: isStepCount(5), prompt: 'fetch' });
  assert.equal(text, 'I cannot.');
  assert.ok(!content.some(({ type }) => type === 'tool-approval-request'));
  assert.deepEqual(workspace.commands, []);
  assert.match(JSON.stringify(prompts.at(-1)), /denied by the command rule/);
});

test('what was allowed for the session is not asked again', async () => {
  const { workspace, approvals, tools } = policed();
  approvals.allow({ tool: 'shell', command: 'make' });
  const model = scripted([{ tool: 'shell', input: { command: 'make clean' } }, { tool: 'shell', input: { command: 'make all' } }, 'Built.']);
  const { text } = await generateText({ model, tools: aiTools(tools), toolApproval: aiToolApproval(tools), stopWhen: isStepCount(5), prompt: 'build' });
  assert.equal(text, 'Built.');
  assert.deepEqual(workspace.commands.map(({ command }) => command), ['make clean', 'make all']);
});
