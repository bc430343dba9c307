// SPDX-License-Identifier: Apache-2.0
//
// Zip (APPNOTE.TXT of PKWARE, 4.3) with stored entries, all sizes in zip64's 8 bytes, as
// numpy.savez writes it. Headers are written with room for any length, and again once it is known;
// then the checksum of header and numbers is made of those of both.

#include "tools/encore/npz_file.h"

#include <array>

#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

constexpr size_t kNpzHeaderBytes = 128;  // a multiple of 64, so that the numbers are aligned

std::string NpzNumber(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value & 0xFF);
  return text;
}

// ---- Zip's checksum, CRC-32: polynomials modulo kCrcPolynomial, the highest power in the lowest
// bit.
constexpr uint32_t kCrcPolynomial = 0xEDB88320;

constexpr std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kCrcPolynomial : 0);
    table[i] = value;
  }
  return table;
}

// That of the bytes before, whose checksum is `crc`, and of these.
uint32_t Crc(uint32_t crc, std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = CrcTable();
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc = kTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xFF] ^ crc >> 8;
  }
  return ~crc;
}

uint32_t CrcProduct(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000u) != 0) product ^= b;
    b = b >> 1 ^ ((b & 1) != 0 ? kCrcPolynomial : 0);
  }
  return product;
}

// Of some bytes and then `count` others, by the checksums of both: first x^(8 count) + second.
uint32_t JoinedCrc(uint32_t first, uint32_t second, uint64_t count) {
  uint32_t power = 0x00800000u;  // x^8
  for (; count != 0; count >>= 1) {
    if ((count & 1) != 0) first = CrcProduct(power, first);
    power = CrcProduct(power, power);
  }
  return first ^ second;
}

std::string NpzArrayHeader(const std::string& type, const std::string& shape) {
  const std::string magic = "\x93NUMPY\x01";
  const size_t length = kNpzHeaderBytes - magic.size() - 3;
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(length - 1, ' ');
  return magic + '\0' + NpzNumber(length, 2) + header + '\n';
}

// From the version that reads it to the length of the name.
std::string ZipHeader(uint32_t crc, size_t name_bytes) {
  const std::string dos_date = NpzNumber(0, 2) + NpzNumber(0x21, 2);  // 1980-01-01
  return NpzNumber(45, 2) + NpzNumber(0, 4) + dos_date + NpzNumber(crc, 4) +
         NpzNumber(0xFFFFFFFF, 4) + NpzNumber(0xFFFFFFFF, 4) + NpzNumber(name_bytes, 2);
}

}  // namespace

NpzWriter::NpzWriter(const std::string& path)
    : file_(Take(internal::FileWriter::Create(path), "--output")) {}

std::string NpzWriter::LocalHeader(const Entry& entry) {
  return "PK\x03\x04" + ZipHeader(entry.crc, entry.name.size()) + NpzNumber(20, 2) + entry.name +
         NpzNumber(1, 2) + NpzNumber(16, 2) + NpzNumber(entry.bytes, 8) + NpzNumber(entry.bytes, 8);
}

std::string NpzWriter::DirectoryEntry(const Entry& entry) {
  return "PK\x01\x02" + NpzNumber(45, 2) + ZipHeader(entry.crc, entry.name.size()) +
         NpzNumber(28, 2) + NpzNumber(0, 10) + NpzNumber(0xFFFFFFFF, 4) + entry.name +
         NpzNumber(1, 2) + NpzNumber(24, 2) + NpzNumber(entry.bytes, 8) +
         NpzNumber(entry.bytes, 8) + NpzNumber(entry.place, 8);
}

void NpzWriter::Begin(const std::string& name, const std::string& type) {
  entries_.push_back({.name = name + ".npy", .place = written_});
  type_ = type;
  numbers_ = 0;
  Write(LocalHeader(entries_.back()));
  Write(NpzArrayHeader(type_, "()"));
  entries_.back().bytes = kNpzHeaderBytes;
}

void NpzWriter::AppendBytes(std::span<const std::byte> bytes) {
  numbers_ = Crc(numbers_, bytes);
  entries_.back().bytes += bytes.size();
  Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void NpzWriter::End(const std::string& shape) {
  Entry& entry = entries_.back();
  const std::string header = NpzArrayHeader(type_, shape);
  entry.crc =
      JoinedCrc(Crc(0, std::as_bytes(std::span(header))), numbers_, entry.bytes - kNpzHeaderBytes);
  const std::string both = LocalHeader(entry) + header;
  Check(file_.Replace(entry.place, std::as_bytes(std::span(both))), "--output");
}

void NpzWriter::Commit() {
  const size_t place = written_;
  for (const Entry& entry : entries_) Write(DirectoryEntry(entry));
  const size_t end = written_;
  const std::string counts = NpzNumber(entries_.size(), 8) + NpzNumber(entries_.size(), 8);
  Write("PK\x06\x06" + NpzNumber(44, 8) + NpzNumber(45, 2) + NpzNumber(45, 2) + NpzNumber(0, 8) +
        counts + NpzNumber(end - place, 8) + NpzNumber(place, 8));
  Write("PK\x06\x07" + NpzNumber(0, 4) + NpzNumber(end, 8) + NpzNumber(1, 4));
  Write("PK\x05\x06" + NpzNumber(0, 4) + NpzNumber(entries_.size(), 2) +
        NpzNumber(entries_.size(), 2) + NpzNumber(0xFFFFFFFF, 4) + NpzNumber(0xFFFFFFFF, 4) +
        NpzNumber(0, 2));
  CheckWritten(file_.Commit(), "--output");
}

void NpzWriter::Write(std::string_view bytes) {
  Check(file_.Write(std::as_bytes(std::span(bytes))), "--output");
  written_ += bytes.size();
}

}  // namespace encore::tool
