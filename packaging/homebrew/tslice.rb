# Who publishes a release puts its address and the sum of its archive here (`shasum -a 256 FILE`).
class Tslice < Formula
  desc "Cut pieces out of tensor files of any size, with NumPy's indexing"
  homepage "https://example.org/tslice"
  url "https://example.org/tslice/releases/tslice-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", "--features", "remote,zarr,hdf5", *std_cargo_args
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"tslice", "completions")
    doc.install Dir["docs/*"], "README.md"
  end

  test do
    (testpath/"a.raw").binwrite [1, 2, 3, 4].pack("l<*")
    system bin/"tslice", "a.raw", "[::-1]", "--dtype", "int32", "--shape", "4", "-o", "b.npy"
    assert_equal [4, 3, 2, 1], (testpath/"b.npy").binread[-16..].unpack("l<*")
  end
end
