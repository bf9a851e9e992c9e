// SPDX-License-Identifier: MIT
// usage: node --insecure-http-parser echo_origin.mjs PORT
// An origin with Node's lenient parser: prints a line for each request and for each one that it could not
// read, and redirects to the target that it saw.
import http from 'node:http';

const say = (...words) => process.stdout.write(words.join(' ') + '\n');
const server = http.createServer((request, response) => {
  let bytes = 0;
  request.on('data', (part) => { bytes += part.length; });
  request.on('end', () => {
    say(request.method, request.url, response.statusCode, 'for=' + (request.headers['x-forwarded-for'] ?? ''));
    response.writeHead(302, { Location: '/seen' + request.url });
    response.end();
  });
});
server.keepAliveTimeout = 60000;
server.on('clientError', (error, socket) => {
  // a connection that ends in a body is no request
  if (error.code !== 'ECONNRESET' && error.code !== 'HPE_INVALID_EOF_STATE')
    say('bad', error.code, 400, 'for=');
  socket.destroy();
});
server.listen(Number(process.argv[2]), '127.0.0.1');
