// Tells a (local) API that the tests pass. It knows the API's address and the proxy, and no token.
const http = require('node:http');

const proxy = new URL(process.env.HTTP_PROXY);
const api = process.env.REPORT_URL;
const request = http.request({ host: proxy.hostname, port: proxy.port, method: 'POST', path: api, headers: { host: new URL(api).host } });
request.on('response', async (response) => {
  let body = '';
  for await (const chunk of response) body += chunk;
  console.log(`${response.statusCode} ${body}`);
  process.exitCode = response.statusCode === 200 ? 0 : 1;
});
request.end('tests pass');
