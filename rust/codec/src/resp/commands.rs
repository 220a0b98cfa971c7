//! Commands, as arrays of bulk strings.

/// Most digits of a length, sign and all.
const DIGITS: usize = 20;

/// How many bytes [`pack`] writes.
#[must_use]
pub fn packed_size<A: AsRef<[u8]>>(commands: &[Vec<A>]) -> usize {
    let bulk = |argument: &A| {
        let size = argument.as_ref().len();
        1 + digits(size) + 2 + size + 2
    };
    let command =
        |arguments: &Vec<A>| 1 + digits(arguments.len()) + 2 + arguments.iter().map(bulk).sum::<usize>();
    commands.iter().map(command).sum()
}

/// Write a pipeline of commands into `out`, which must be [`packed_size`] long.
///
/// # Panics
/// If it is not.
pub fn pack<A: AsRef<[u8]>>(commands: &[Vec<A>], out: &mut [u8]) {
    let mut pen = Pen { out, at: 0 };
    for arguments in commands {
        pen.header(b'*', arguments.len());
        for argument in arguments {
            let argument = argument.as_ref();
            pen.header(b'$', argument.len());
            pen.write(argument);
            pen.write(b"\r\n");
        }
    }
    assert_eq!(pen.at, pen.out.len(), "the space must be packed_size() long");
}

struct Pen<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl Pen<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn header(&mut self, kind: u8, mut number: usize) {
        let mut text = [0; DIGITS];
        let mut from = DIGITS;
        loop {
            from -= 1;
            text[from] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.write(&[kind]);
        self.write(&text[from..]);
        self.write(b"\r\n");
    }
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}
