// The main job, for real: an agent of the AI SDK finds and mends a bug in a project through croft's tools.
// The model is the SDK's own mock, so that the run needs no key and is the same each time; tools, files and
// commands are real. `npm run demo` sets everything up.
import { generateText, isStepCount } from 'ai';
import { createFsTools, createShellTool, NodeWorkspace } from 'croft';
import { aiTools, aiToolApproval } from 'croft/ai-sdk';
import { makeProject } from './project.mjs';
import { scriptedModel } from './model.mjs';
import { showCall, showResult, showText } from './show.mjs';

const root = makeProject();
const workspace = new NodeWorkspace({ root });
const { containment, resolver } = workspace.capabilities();
showText(`A project with a bug: ${root}`);
showText(`Commands run on the host, held by ${containment}; paths are confined by ${resolver}. No Docker is used.`);

const tools = [
  ...createFsTools(workspace),
  createShellTool(workspace, { needsApproval: false, allow: ['node --test'] }),
];

const { steps } = await generateText({
  model: scriptedModel(),
  tools: aiTools(tools),
  toolApproval: aiToolApproval(tools),
  stopWhen: isStepCount(12),
  prompt: 'The tests fail. Find the bug and fix it.',
  onLanguageModelCallEnd: ({ content }) => content.filter(({ type }) => type === 'text').forEach((part) => showText(part.text)),
  onToolExecutionStart: ({ toolCall }) => showCall(toolCall.toolName, toolCall.input),
  onToolExecutionEnd: ({ toolOutput }) => showResult(toolOutput),
});
const runs = steps.flatMap((step) => step.toolResults).filter((result) => result.toolName === 'shell');
const codes = runs.map((run) => run.output.exitCode);
if (codes.length !== 2 || codes[0] === 0 || codes[1] !== 0) {
  console.error(`The demo failed: exit codes of the test runs were ${codes.join(', ')}, expected a failure and then 0.`);
  process.exit(1);
}
await workspace.close();
