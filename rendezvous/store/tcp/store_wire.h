#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>

#include "core/security/byte_stream.h"

namespace tutti::store_wire {

// `StoreWire` is the server's socket to one client, possibly encrypted. It has the interface that
// asio::async_read and async_write need. It must outlive its handlers.
class StoreWire {
 public:
  using executor_type = asio::ip::tcp::socket::executor_type;

  explicit StoreWire(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  asio::ip::tcp::socket& socket() { return socket_; }
  executor_type get_executor() { return socket_.get_executor(); }
  void encrypt(std::unique_ptr<security::Tls> tls) { stream_.encrypt(std::move(tls)); }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler handler) {
    const asio::mutable_buffer place = *asio::buffer_sequence_begin(buffers);
    attempt(asio::ip::tcp::socket::wait_read, std::move(handler), [this, place](int& error) {
      const std::span<std::byte> whole(static_cast<std::byte*>(place.data()), place.size());
      return stream_.read(socket_.native_handle(), whole, error);
    });
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler handler) {
    const asio::const_buffer first = *asio::buffer_sequence_begin(buffers);
    attempt(asio::ip::tcp::socket::wait_write, std::move(handler), [this, first](int& error) {
      const std::span<const std::byte> part(static_cast<const std::byte*>(first.data()), first.size());
      return stream_.write(socket_.native_handle(), part, error);
    });
  }
  // Calls the handler when there is something to read.
  template <class Handler>
  void async_await(Handler handler) {
    if (stream_.has_pending()) {
      asio::post(get_executor(), [handler = std::move(handler)]() mutable { handler(asio::error_code()); });
    } else {
      socket_.async_wait(asio::ip::tcp::socket::wait_read, std::move(handler));
    }
  }

 private:
  template <class Handler, class Step>
  void attempt(asio::ip::tcp::socket::wait_type event, Handler handler, Step step) {
    int error = 0;
    const std::size_t bytes = step(error);
    if (bytes == 0 && error == EAGAIN) {
      socket_.async_wait(event,
                         [this, event, handler = std::move(handler), step](asio::error_code failed) mutable {
                           if (failed) return handler(failed, std::size_t{0});
                           attempt(event, std::move(handler), step);
                         });
      return;
    }
    const asio::error_code code = bytes > 0 ? asio::error_code()
                                  : error == EPIPE
                                      ? asio::error_code(asio::error::eof)
                                      : asio::error_code(error, asio::error::get_system_category());
    asio::post(get_executor(),
               [handler = std::move(handler), code, bytes]() mutable { handler(code, bytes); });
  }

  asio::ip::tcp::socket socket_;
  security::ByteStream stream_;
};

}  // namespace tutti::store_wire
