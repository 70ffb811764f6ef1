// A list of sums and signatures of it, all made by the program minisign 0.11 with two keys that nothing else uses.
#pragma once

namespace neuroshard::test {

inline constexpr const char* release_key = "RWQyBNBKB++ReGoBTqyU4GIpjUhZ4RuwU9yktLCIbkUI/26/tR5/PXSS";
inline constexpr const char* foreign_key = "RWSaqGHs1+bRTUByTz6FylyAOkZo/MuBrFrZrXhvKUqLbmc5Atsm/JwG";
inline constexpr const char* release_list =
    "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  neuroshard_0.3.0-1_amd64.deb\n"
    "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  neuroshardd_0.3.0-1_amd64.deb\n";
inline constexpr const char* signature_current =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: version:0.1.0 file:SHA256SUMS\n"
    "LcVBrm9oxuHDUAJ5JGhf93VLvbhWr40Yr4I/cGP76QbCoVQwmcL4Zpg90kfdimnPQiuMEQa3/tsGtrS42+2zDA==\n";
inline constexpr const char* signature_newer =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: version:0.3.0 file:SHA256SUMS\n"
    "2fNmWOyPFdGakDeQK7ScgxuGhI0HYXtiBImWj9n7ouF5mvHETQiW+/Dcey0vryWJVYoDVa/tX7pyNKUs1e/DDQ==\n";
// Its trusted comment has a further word, and tabs.
inline constexpr const char* signature_newest =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: timestamp:1795000000\tversion:0.4.0\tfile:SHA256SUMS\n"
    "T47SEz8GKy5Gm9V4PJ+A3pBPwQT8owXGOv1bK2YMVqJfUSM1O6PRH+3ucjGynWyTJNISmniQO59WpzlVpNA4Bg==\n";
inline constexpr const char* signature_other_file =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: version:0.3.0 file:SHA512SUMS\n"
    "m/WmqwFkgYpsWMwQTyE45ub4jgT8CFIDExkqF0E0UkaweBInflBXpJICplTEo2qbI8H2U5q4KrMW/rwh4IoOBQ==\n";
inline constexpr const char* signature_no_version =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: file:SHA256SUMS\n"
    "lpNLiaQ31fguU9s6iVGwVi7hRKkEOWjOm+E1I6unOA3NeJOaBGaacrtuxCVhf9eFZiEV2oEhxotDMKP4MnKlCA==\n";
inline constexpr const char* signature_two_versions =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUQyBNBKB++ReI8E6gr/KdcW3FsiuhZa46kdStEv4lZE9w/ZrZUH70FG5t9a/CEBYhlyTtXk6BpsmLVDwrpmVPPcs2VciNILMQg=\n"
    "trusted comment: version:0.3.0 version:0.4.0 file:SHA256SUMS\n"
    "h6e+E6rgyDDWSCqsfAg/uLgIeGwlycv+qN0hapFCNQI9ecmh1zFBe5xxYFT8VYvxqn5DFX1RZqHGUCvM0yyvAw==\n";
// Made with foreign_key.
inline constexpr const char* signature_foreign =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RUSaqGHs1+bRTWnxZ8TRVBEAjvmEwviQoYrysIekf6gukciPb6AS6y6Fippay0yDVdXvteIW5aI8aiJy9/3Qd/uszgCMG8njHg8=\n"
    "trusted comment: version:0.3.0 file:SHA256SUMS\n"
    "bVsIBOFaIUsATlW/dtgEm2mW9mIhJ24eCsvRAWydiqA9h4xVoOE/7tKTqpBRB5gejwWS47q2hI5A2FjUX27NAA==\n";
// minisign -l: over the file itself instead of its hash.
inline constexpr const char* signature_legacy =
    "untrusted comment: signature of NeuroShard's releases\n"
    "RWQyBNBKB++RePoA5ba8WRm2/dDXx/IJkMEHx5epttrHjHeS49XmuxnxrRB9eZW6kCnIM9PXe7iWgAygTVY33rp0cjqGMPW3NAk=\n"
    "trusted comment: version:0.3.0 file:SHA256SUMS\n"
    "AHxvTTaDB7EZVXua9Qiqevlhp6+LJNiB+n9zoXcCFd6rADHwPtRqDn+ycIHrbu75mib89o9ngmRcA34I6XcYCA==\n";

}  // namespace neuroshard::test
