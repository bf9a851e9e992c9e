// SPDX-License-Identifier: MIT
// Node's HTTP client against weir: its parser is strict, and it shares connections between requests as browsers do.
// usage: node client.mjs PORT      (the server of clients.py: two lines, and the body that it got)
import http from 'node:http';

const port = Number(process.argv[2]);
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
const sockets = new Set();
let checks = 0;

function check(good, what) {
	checks++;
	if (!good)
		throw new Error(what);
}

function ask(options, pieces = []) {
	return new Promise((resolve, reject) => {
		const req = http.request({ host: '127.0.0.1', port, agent, ...options }, (res) => {
			const got = [];
			res.on('data', (d) => got.push(d));
			res.on('end', () => resolve({ res, body: Buffer.concat(got).toString().split('\n').slice(2).join('\n') }));
			res.on('error', reject);
		});
		req.on('socket', (s) => sockets.add(s));
		req.on('error', reject);
		if (options.trailers)
			req.addTrailers(options.trailers);
		for (const piece of pieces)
			req.write(piece);
		req.end();
	});
}

async function many() {
	const all = [];
	for (let i = 0; i < 400; i++)
		all.push(ask({ path: `/${i}`, method: 'POST', headers: { 'Content-Length': 3 } }, [String(100 + i % 900)]));
	const answers = await Promise.all(all);
	answers.forEach(({ res, body }, i) => check(res.statusCode === 200 && body === String(100 + i % 900), `request ${i}: ${body}`));
	check(sockets.size === 4, `${sockets.size} connections for 400 requests of an agent with 4`);
}

async function kinds() {
	let a = await ask({ path: '/', method: 'HEAD' });
	check(a.res.statusCode === 200 && a.body === '', 'HEAD');
	check(a.res.headers.date && a.res.headers.server === 'weir', 'Date and Server');
	a = await ask({ path: '/a', method: 'PUT' }, ['x'.repeat(70000), 'y'.repeat(70000), 'z']);
	check(a.body.length === 140001 && a.body.endsWith('yz'), 'chunked');
	a = await ask({ path: '/a', method: 'POST', headers: { 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum' }, trailers: { 'X-Sum': '1' } }, ['abc']);
	check(a.res.statusCode === 200 && a.body === 'abc', 'trailers');
	a = await ask({ path: '/a', method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 2 } }, ['ok']);
	check(a.body === 'ok', 'Expect');
	a = await ask({ path: '/', method: 'GET', agent: false, headers: { Connection: 'close' } });
	check(a.res.headers.connection === 'close', 'Connection: close');
	a = await ask({ path: '/', method: 'GET', agent: false, headers: { Connection: 'Upgrade', Upgrade: 'websocket' } });
	check(a.res.statusCode === 200, 'an Upgrade that is not taken');
}

await many();
await kinds();
agent.destroy();
console.log(`node ${process.version}: ${checks} checks`);
