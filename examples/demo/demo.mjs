// The main job, for real: an agent of the AI SDK finds and mends a bug in a project through croft's tools.
// The model is the SDK's own mock, so that the run needs no key and is the same each time; tools, files and
// commands are real. `npm run demo` sets everything up.
import { rmSync } from 'node:fs';
import { generateText, isStepCount } from 'ai';
import { createFsTools, createShellTool, NodeWorkspace } from 'croft';
import { aiTools, aiToolApproval } from 'croft/ai-sdk';
import { startApi } from './api.mjs';
import { makeProject } from './project.mjs';
import { scriptedModel } from './model.mjs';
import { showCall, showResult, showText } from './show.mjs';

const root = makeProject();
const api = await startApi();
const workspace = new NodeWorkspace({ root, env: { ...api.broker.env, REPORT_URL: api.url } });
const { containment, resolver } = workspace.capabilities();
showText(`A project with a bug: ${root}`);
showText(`Commands run on the host, held by ${containment}; paths are confined by ${resolver}. No Docker is used.`);

const tools = [
  ...createFsTools(workspace),
  createShellTool(workspace, { needsApproval: false, allow: ['node --test', 'node report.js', 'env'] }),
];

const { steps } = await generateText({
  model: scriptedModel(),
  tools: aiTools(tools),
  toolApproval: aiToolApproval(tools),
  stopWhen: isStepCount(16),
  prompt: 'The tests fail. Find the bug and fix it.',
  onLanguageModelCallEnd: ({ content }) => content.filter(({ type }) => type === 'text').forEach((part) => showText(part.text)),
  onToolExecutionStart: ({ toolCall }) => showCall(toolCall.toolName, toolCall.input),
  onToolExecutionEnd: ({ toolOutput }) => showResult(toolOutput),
});
const runs = steps.flatMap((step) => step.toolResults).filter((result) => result.toolName === 'shell');
const codes = runs.map((run) => run.output.exitCode);
await workspace.close();
await api.close();
rmSync(root, { recursive: true });

check(codes.length === 4 && codes[0] !== 0, 'the tests should have failed at first');
check(codes[1] === 0, 'the tests should have passed after the edit');
check(runs[2]?.output.stdout.startsWith('200'), 'the API should have taken the report, with the token that the broker added');
check(!JSON.stringify(steps).includes(api.token), 'no token may be seen anywhere in the run');
showText('The command reached the API with a token it never saw: the broker on the host added it.');

function check(holds, what) {
  if (holds) return;
  console.error(`The demo failed: ${what}. Exit codes: ${codes.join(', ')}.`);
  process.exit(1);
}
