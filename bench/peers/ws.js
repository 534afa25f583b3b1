// A one-hop server, like a bridge inside an extension: parse the message, answer it, print the answer.
const { WebSocketServer } = require('ws');

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 }, () => console.log(server.address().port));
server.on('connection', (socket) => {
  socket.on('message', (data) => {
    const { id, params } = JSON.parse(data);
    socket.send(JSON.stringify({ id, result: params }));
  });
});
