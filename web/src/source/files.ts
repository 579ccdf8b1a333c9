/** The files door: what a reader drops or chooses. */

import type { OpenedThing } from "../worker/protocol.ts";

/** Most files of a dropped folder. Reading them takes long, and someone may have dropped a whole disk. */
const FILES_MAX = 50_000;

/** Files that were chosen one by one, or a whole folder by `webkitdirectory`. */
export function fromFileList(list: FileList | File[]): OpenedThing | null {
  const files = [...list];
  const first = files[0];
  if (first === undefined) return null;
  const path = first.webkitRelativePath;
  if (path) {
    const folder = path.split("/", 1)[0] as string;
    const inside = files.map((file): [string, Blob] => [file.webkitRelativePath.slice(folder.length + 1), file]);
    return asFolder(folder, inside);
  }
  if (files.length === 1) return { name: first.name, files: [[first.name, first]], isFolder: false };
  return asFolder("the chosen files", files.map((file) => [file.name, file]));
}

function asFolder(name: string, files: [string, Blob][]): OpenedThing {
  return { name, files, isFolder: true };
}

interface DirectoryHandle {
  kind: "directory";
  name: string;
  values(): AsyncIterable<FileHandle | DirectoryHandle>;
}
interface FileHandle {
  kind: "file";
  name: string;
  getFile(): Promise<File>;
}

/** What was dropped. Must be called while the event is handled: its items end with it. Raises an error for too many files. */
export async function fromDrop(transfer: DataTransfer): Promise<OpenedThing | null> {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const plain = [...transfer.files];
  const handles = items.map((item) => {
    return (item as unknown as { getAsFileSystemHandle?: () => Promise<FileHandle | DirectoryHandle | null> }).getAsFileSystemHandle?.();
  });
  if (items.length === 1 && handles[0] !== undefined) {
    const handle = await handles[0].catch(() => null);
    if (handle?.kind === "directory") {
      const files: [string, Blob][] = [];
      await collect(handle, "", files);
      return asFolder(handle.name, files);
    }
  }
  return fromFileList(plain);
}

async function collect(directory: DirectoryHandle, prefix: string, files: [string, Blob][]): Promise<void> {
  for await (const entry of directory.values()) {
    // A part of a folder would be judged as if the rest were missing.
    if (files.length >= FILES_MAX) throw new Error(`This folder has more than ${FILES_MAX.toLocaleString("en")} files, which are too many to drop. Choose the folder instead, or run: aver verify FOLDER`);
    if (entry.kind === "file") files.push([prefix + entry.name, await entry.getFile()]);
    else await collect(entry, `${prefix}${entry.name}/`, files);
  }
}
